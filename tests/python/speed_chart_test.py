# SPDX-License-Identifier: Apache-2.0
"""The picture of speeds has the ratios of the files it is made from."""
import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "bench" / "gpu" / "speed_chart.py"
SPEC = importlib.util.spec_from_file_location("speed_chart", PROGRAM)
speed_chart = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(speed_chart)

SHAPE = "wan-1.3b-480p"


class SpeedChart(unittest.TestCase):
    def setUp(self):
        seed = int.from_bytes(os.urandom(4), "little")
        print(f"seed {seed}", file=sys.stderr)
        self.random = random.Random(seed)

    def case(self, *runs, **facts):
        """A result with these runs, and by run how often its time is cuDNN's."""
        dense = self.random.uniform(5, 50)
        ratios = {run: self.random.uniform(1, 40) for run in runs}
        times = {run: {"short_ms": dense / times} for run, times in ratios.items()}
        return {"shape": SHAPE, "cudnn dense": {"short_ms": dense}, **times, **facts}, ratios

    def expect_bars(self, result, expected):
        bars = speed_chart.collect([{"results": [result]}]).get(SHAPE, {})
        self.assertEqual(list(bars), list(expected))
        for label, times in expected.items():
            self.assertAlmostEqual(bars[label], times)

    def test_forward_passes(self):
        facts = {"mask_block": 64, "unequal": False}
        result, ratios = self.case("spargejit", density=0.051, **facts)
        self.expect_bars(result, {"5 % of the blocks": ratios["spargejit"]})
        result, ratios = self.case("spargejit", density=None, **facts)
        self.expect_bars(result, {"dense": ratios["spargejit"]})

    def test_other_blocks_and_unequal_rows_are_left_out(self):
        for facts in ({"mask_block": 16, "unequal": False}, {"mask_block": 64, "unequal": True}):
            result, _ = self.case("spargejit", density=0.05, **facts)
            self.expect_bars(result, {})

    def test_calls_that_select(self):
        result, ratios = self.case("whole call", "graph", density=0.049, mask_block=64)
        self.expect_bars(result, {"blocks chosen, 5 %": ratios["whole call"]})

    def test_backward_passes(self):
        variants = {"51 of 512": {}, "dense": {}}
        result, ratios = self.case(*variants, variants=variants)
        self.expect_bars(result, {"backward pass, 10 % of the blocks": ratios["51 of 512"],
                                  "backward pass, dense": ratios["dense"]})

    def test_eight_bits(self):
        result, ratios = self.case("whole call", density=0.05)
        result["precisions"] = {"fp8_fast": {"whole call": result.pop("whole call")}}
        self.expect_bars(result, {"blocks chosen, 5 %, eight bits (fast)": ratios["whole call"]})

    def test_writes_a_picture(self):
        if not importlib.util.find_spec("matplotlib"):
            self.skipTest("matplotlib is not installed: no picture")
        result, _ = self.case("spargejit", density=0.05, mask_block=64, unequal=False)
        with tempfile.TemporaryDirectory() as folder:
            data, picture = (os.path.join(folder, name) for name in ("bench.json", "speed.png"))
            with open(data, "w", encoding="utf-8") as file:
                json.dump({"results": [result]}, file)
            subprocess.run([sys.executable, PROGRAM, data, "-o", picture], check=True)
            with open(picture, "rb") as file:
                self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def test_files_without_such_a_shape_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            data = os.path.join(folder, "bench.json")
            with open(data, "w", encoding="utf-8") as file:
                json.dump({"results": [{"shape": "flux"}]}, file)
            run = subprocess.run([sys.executable, PROGRAM, data, "-o", os.path.join(folder, "speed.png")],
                                 capture_output=True, text=True)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn("wan-14b-720p", run.stderr)


if __name__ == "__main__":
    unittest.main()
