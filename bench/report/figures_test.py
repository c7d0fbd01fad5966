# SPDX-License-Identifier: Apache-2.0
"""The gate keeps what is good enough, tells what is missed and what was not
measured; fits find the lines that points were made from.
"""
import copy
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from report import figures, tables


def series(milliseconds):
    return {"ms": milliseconds, "min_ms": milliseconds, "max_ms": milliseconds, "runs": 5, "cores": 1.0}


def growth_rows(exponent):
    return [{"length": 64 * pairs, "density": 0.05, "visited_pairs": pairs, "select": series(0.1),
             "attention": series(0.5 + 0.02 * pairs**exponent)} for pairs in (100, 400, 1600, 6400)]


def good_sections():
    rows = {"rows": growth_rows(1)}
    kernels = [f"attention_fwd for host (has_lists={lists})" for lists in (0, 1)]
    return {
        "dense_float32_128": {"rows": [{"length": 4096, "share": 0.7, "busy_share": 0.75, "cores": 1.9}]},
        "sparse_long": {"length": 16384, "rows": [
            {"method": "topk", "mask_block_kv": 64, "density": density, "speed_up": 0.9 / density}
            for density in (0.02, 0.0508, 0.1)]},
        "backward": {"length": 8192, "rows": [
            {"mask_block_kv": 64, "density": density, "speed_up": 0.9 / density}
            for density in (0.02, 0.0508, 0.1)]},
        "growth": {key: rows for key, _, _ in figures.GROWTH_SERIES},
        "compile_dense": {"method": "dense", "cold_ms": 300},
        "compile_block_sparse": {"method": "block_sparse", "cold_ms": 400},
        "calls": {"head_dim": 8, "rows": [{"method": "dense", "heads": heads, "p10_us": 5 + 7 * heads,
                                           "us": 6 + 8 * heads, "p90_us": 90}
                                          for heads in (1, 2, 4, 8)]},
        "lengths": {"lengths": list(range(50)), "rows": [
            {"method": "dense", "kernels_of_others": 0, "kernels": kernels[:1]},
            {"method": "topk", "kernels_of_others": 0, "kernels": kernels[1:] + ["pool"]}]},
        "memory": {"length": 96000, "density": 0.05, "peak_mib": 300},
    }


class FitTest(unittest.TestCase):
    def test_finds_the_line(self):
        seed = random.randrange(2**32)
        numbers = random.Random(seed)
        start, slope = numbers.uniform(0.1, 9), numbers.uniform(0.1, 9)
        xs = [numbers.uniform(1, 1000) for _ in range(8)]
        line = figures.fit_line(xs, [start + slope * x for x in xs])
        message = f"seed {seed}"
        self.assertAlmostEqual(line.start, start, places=6, msg=message)
        self.assertAlmostEqual(line.slope, slope, places=6, msg=message)
        self.assertLess(line.worst, 1e-9, message)

    def test_exponent_of_a_power(self):
        self.assertAlmostEqual(figures.fit_line([1, 2, 4], [3, 12, 48]).exponent, 2)


class GateTest(unittest.TestCase):
    def missed(self, sections):
        return [figure.name for figure in figures.promised_figures(sections) if not figure.kept]

    def test_keeps_what_is_good_enough(self):
        self.assertEqual(self.missed(good_sections()), [])

    def assert_misses(self, word, change):
        sections = copy.deepcopy(good_sections())
        change(sections)
        missed = self.missed(sections)
        self.assertTrue(missed and all(word in name for name in missed), missed)

    def test_misses_each(self):
        self.assert_misses("peak", lambda s: s["dense_float32_128"]["rows"][0].update(share=0.649))
        self.assert_misses("faster than dense", lambda s: s["sparse_long"]["rows"][1].update(speed_up=14.9))
        self.assert_misses("that of dense", lambda s: s["backward"]["rows"][1].update(speed_up=9.9))
        self.assert_misses("line", lambda s: s["growth"].update(over_density={"rows": growth_rows(1.3)}))
        self.assert_misses("compilation", lambda s: s["compile_block_sparse"].update(cold_ms=1001))
        self.assert_misses("overhead", lambda s: [row.update(p10_us=row["p10_us"] + 16) for row in s["calls"]["rows"]])
        self.assert_misses("attention kernels", lambda s: s["lengths"]["rows"][0]["kernels"].append(
            "attention_fwd for host (has_lists=0, kv_len=7)"))
        self.assert_misses("after the first", lambda s: s["lengths"]["rows"][1].update(kernels_of_others=1))
        self.assert_misses("memory", lambda s: s["memory"].update(peak_mib=1025))

    def test_takes_the_density_nearest_to_5_percent(self):
        figure = next(figures.sparse_figures(good_sections()))
        self.assertIn("0.0508", figure.name)

    def test_tells_what_was_not_measured(self):
        for name in good_sections():
            sections = good_sections()
            del sections[name]
            with self.assertRaises(figures.NotMeasured, msg=name):
                figures.promised_figures(sections)
        shorter = good_sections()
        shorter["memory"]["length"] = 4096
        with self.assertRaises(figures.NotMeasured):
            figures.promised_figures(shorter)

    def test_table_marks_the_missed(self):
        sections = good_sections()
        self.assertNotIn("**no**", tables.gate_part(sections))
        sections["memory"]["peak_mib"] = 2000
        self.assertEqual(tables.gate_part(sections).count("**no**"), 1)


if __name__ == "__main__":
    unittest.main()
