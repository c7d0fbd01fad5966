# SPDX-License-Identifier: Apache-2.0
"""The figures that are promised, each with its bound, and the fits behind them."""
from dataclasses import dataclass

import numpy as np


@dataclass
class Line:
    """y = start + slope * x, by least squares of the relative residuals."""
    start: float
    slope: float
    worst: float     # largest |fit - y| / y
    exponent: float  # slope of log y over log x


def fit_line(xs, ys):
    xs, ys = np.asarray(xs, float), np.asarray(ys, float)
    matrix = np.stack([1 / ys, xs / ys], axis=1)
    start, slope = np.linalg.lstsq(matrix, np.ones_like(ys), rcond=None)[0]
    worst = np.max(np.abs(start + slope * xs - ys) / ys)
    exponent = np.polyfit(np.log(xs), np.log(ys), 1)[0]
    return Line(float(start), float(slope), float(worst), float(exponent))


# Series of the section "growth": (key, what varies, abscissa).
GROWTH_SERIES = (
    ("over_density", "density at one length", "visited_pairs"),
    ("over_length", "length at one density", "visited_pairs"),
    ("over_length_few_blocks", "length at one number of blocks a row", "length"),
)


def growth_line(growth, key, abscissa):
    rows = growth[key]["rows"]
    return fit_line([row[abscissa] for row in rows], [row["attention"]["ms"] for row in rows])


def call_lines(calls):
    """{method: line over heads in microseconds}; its start is the overhead.
    Taken from the faster calls: the start is small against a single disturbed one."""
    lines = {}
    for method in dict.fromkeys(row["method"] for row in calls["rows"]):
        rows = [row for row in calls["rows"] if row["method"] == method]
        lines[method] = fit_line([row["heads"] for row in rows], [row["p10_us"] for row in rows])
    return lines


def attention_kernels(lengths):
    return [kernel for row in lengths["rows"] for kernel in row["kernels"]
            if kernel.startswith("attention_fwd")]


@dataclass
class Figure:
    """A measured value and the bound that it has to keep."""
    name: str
    value: float
    bound: float
    at_least: bool
    unit: str = ""

    @property
    def kept(self):
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def text(self):
        sign = ">=" if self.at_least else "<="
        missed = "" if self.kept else "   MISSED"
        return f"{self.name}: {self.value:.4g}{self.unit} (must be {sign} {self.bound:g}{self.unit}){missed}"


class NotMeasured(Exception):
    """A promised figure has no measurement."""


def find_row(rows, what, **wanted):
    for row in rows:
        if all(row[key] == value for key, value in wanted.items()):
            return row
    raise NotMeasured(what)


def dense_figures(sections):
    row = find_row(sections["dense_float32_128"]["rows"], "dense attention at length 4096", length=4096)
    yield Figure("dense float32, head dimension 128, length 4096, share of the multiply-add peak "
                 f"({row['busy_share']:.2f} of what the {row['cores']:.2f} cores that it had can do)",
                 row["share"], 0.65, True)


def sparse_figures(sections):
    sparse = sections["sparse_long"]
    if sparse["length"] != 16384:
        raise NotMeasured("sparse attention at length 16384")
    rows = [row for row in sparse["rows"] if row["method"] == "topk" and row["mask_block_kv"] == 64]
    row = min(rows, key=lambda row: abs(row["density"] - 0.05))
    yield Figure("selection + attention, length 16384, mask block 128x64, "
                 f"density {row['density']:.4f}: times faster than dense",
                 row["speed_up"], 15, True)


def backward_figures(sections):
    backward = sections["backward"]
    if backward["length"] < 8192:
        raise NotMeasured("the backward pass at length 8192")
    rows = [row for row in backward["rows"] if row["mask_block_kv"] == 64]
    row = min(rows, key=lambda row: abs(row["density"] - 0.05))
    yield Figure(f"backward pass, length {backward['length']}, mask block 128x64, "
                 f"density {row['density']:.4f}: times faster than that of dense",
                 row["speed_up"], 10, True)


def growth_figures(sections):
    for key, what, abscissa in GROWTH_SERIES:
        line = growth_line(sections["growth"], key, abscissa)
        yield Figure(f"attention's time against a line, over {what}: largest relative residual",
                     line.worst, 0.10, False)


def compile_figures(sections):
    for key in ("compile_dense", "compile_block_sparse"):
        one = sections[key]
        yield Figure(f"cold compilation of the forward kernel, method {one['method']}, with all that "
                     "the first call of a process prepares", one["cold_ms"], 1000, False, " ms")


def call_figures(sections):
    for method, line in call_lines(sections["calls"]).items():
        yield Figure(f"warm call of a tiny problem, overhead, method {method}", line.start, 20, False, " us")


def length_figures(sections):
    lengths = sections["lengths"]
    yield Figure(f"{len(lengths['lengths'])} lengths, attention kernels compiled in all",
                 len(attention_kernels(lengths)), 2, False)
    for row in lengths["rows"]:
        yield Figure(f"method {row['method']}, kernels compiled by lengths after the first",
                     row["kernels_of_others"], 0, False)


def memory_figures(sections):
    memory = sections["memory"]
    if memory["length"] < 96000:
        raise NotMeasured("memory at length 96000")
    yield Figure(f"length {memory['length']}, one head, density {memory['density']:.4f}: peak memory",
                 memory["peak_mib"], 1024, False, " MiB")


def promised_figures(sections):
    """All figures; NotMeasured names a section that is missing."""
    figures = []
    for make in (dense_figures, sparse_figures, backward_figures, growth_figures, compile_figures, call_figures,
                 length_figures, memory_figures):
        try:
            figures += list(make(sections))
        except KeyError as error:
            raise NotMeasured(f"section {error}") from error
    return figures
