# SPDX-License-Identifier: Apache-2.0
"""What sparse layers did: density, time, and recall (the share of dense attention's
probability that the selected blocks hold) on sampled rows.
"""
import time

import torch

from .ops import attention, select_blocks

_SAMPLED_ROWS = 16


class Statistics:
    """Rows of figures, one for each call of a layer: dicts of layer, step, density,
    recall, milliseconds."""

    def __init__(self):
        self.rows = []

    def mean(self, figure):
        """{layer: mean of a figure over its calls}."""
        sums = {}
        for row in self.rows:
            sums.setdefault(row["layer"], []).append(row[figure])
        return {layer: sum(values) / len(values) for layer, values in sums.items()}

    def plot(self, path):
        """A picture of density, recall and time by layer, each over the steps."""
        from matplotlib.figure import Figure
        figures = ("density", "recall", "milliseconds")
        figure = Figure(figsize=(12, 3.6), layout="constrained")
        for axes, name in zip(figure.subplots(1, 3), figures):
            by_layer = {}
            for row in self.rows:
                by_layer.setdefault(row["layer"], []).append((row["step"], row[name]))
            for layer, points in by_layer.items():
                axes.plot(*zip(*points), marker=".", label=layer)
            axes.set(title=name, xlabel="step")
        if len({row["layer"] for row in self.rows}) <= 12:
            axes.legend(fontsize="x-small")
        figure.savefig(path)


def recall_of(query, key, lists, scale, causal, rows):
    """Mean over batch, heads and the given rows of the dense probability that lies in
    the rows' selected blocks."""
    group = query.shape[1] // key.shape[1]
    block = lists.mask_block[1]
    scores = query[:, :, rows].float() @ key.repeat_interleave(group, 1).float().transpose(2, 3)
    scores = scores * (query.shape[3] ** -0.5 if scale is None else scale)
    if causal:
        keys = torch.arange(key.shape[2], device=key.device)
        hidden = keys > rows[:, None] + key.shape[2] - query.shape[2]
        scores = scores.masked_fill(hidden, float("-inf"))
    padding = lists.kv_blocks * block - key.shape[2]
    mass = torch.nn.functional.pad(scores.softmax(-1), (0, padding)).unflatten(-1, (lists.kv_blocks, block)).sum(-1)
    blocks = torch.div(rows, lists.mask_block[0], rounding_mode="floor")
    indices, counts = lists.indices[:, :, blocks], lists.counts[:, :, blocks]
    used = torch.arange(indices.shape[3], device=key.device) < counts[..., None]
    return float((mass.gather(3, indices.clamp(min=0).long()) * used).sum(-1).mean())


class Measurement:
    """One measured call. Waits for the device, so that times are the call's own."""

    def __init__(self, layer, statistics):
        self.layer, self.statistics = layer, statistics

    def attend(self, query, key, value, causal, scale, settings):
        settings = {**settings, "causal": causal or self.layer.config.causal}
        if scale is not None:
            settings["scale"] = scale
        milliseconds, o = self._timed(query, lambda: attention(query, key, value, self.layer.config, **settings))
        figures = {"layer": self.layer.name, "step": self.layer.schedule.step, "milliseconds": milliseconds}
        if self.layer.config.method == "dense":  # reads every key, and has no lists
            self.statistics.rows.append({**figures, "density": 1.0, "recall": 1.0})
            return o
        with torch.no_grad():
            lists = select_blocks(query, key, self.layer.config, **settings)
            rows = torch.randint(query.shape[2], (_SAMPLED_ROWS,), device=query.device)
            recall = recall_of(query, key, lists, settings.get("scale", self.layer.config.scale), settings["causal"],
                               rows)
        self.statistics.rows.append({**figures, "density": lists.density(), "recall": recall})
        return o

    @staticmethod
    def _timed(query, run):
        if not query.is_cuda:
            begin = time.perf_counter()
            result = run()
            return 1000 * (time.perf_counter() - begin), result
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        result = run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end), result
