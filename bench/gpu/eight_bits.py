# SPDX-License-Identifier: Apache-2.0
"""Attention in eight bits beside cuDNN's dense attention of bfloat16: calls that round,
pool, select and attend, the same in a graph, and attention of tensors that are rounded
already, with the lists that the call selects.
"""
import math

PRECISIONS = ("fp8_fast", "fp8_balanced", "fp8_exact")
MAX_ERROR = 9e-2  # relative L2 against float64 (tests/reference/Comparison.cpp)
HEADER = ("| shape | precision | visited | whole call ms | graph ms | 8-bit tensors given ms | graph ms | rounding ms "
          "| cuDNN dense ms | times | graph times | given times | given, graph times | rel L2 |\n|" + "---|" * 14)


def measure(library, shape, args, *, sparse_call, shapes, selections, error_of, dense, graph_of, in_turns, visited):
    """Every precision of a shape, in the same turns with cuDNN's dense attention."""
    import torch
    heads, length, head_dim = shapes[shape]
    generator = torch.Generator(device="cuda").manual_seed(args.seed)
    q, k, v, o, _, lists = sparse_call(library, shape, 64, generator)
    result = {"shape": shape, "relative_l2": 0.0, "precisions": {},
              "density": visited(lists, length, 64, heads) / (heads * length * length)}
    runs = {"cudnn dense": dense(q, k, v)}
    for precision in PRECISIONS:
        settings = {"select": selections[shape], "precision": precision}
        whole = library.call(q, k, v, o, **settings)
        whole.prepare()
        whole()
        error = error_of(q, k, v, o, lists, 64, generator)
        o.fill_(math.nan)
        given = library.call(q, k, v, o, lists, precision=precision)
        given.quantise()
        given.attend_quantised()
        error = max(error, error_of(q, k, v, o, lists, 64, generator))
        result["precisions"][precision] = {"relative_l2": error}
        result["relative_l2"] = max(result["relative_l2"], error)

        def capture(stream, settings=settings):
            library.call(q, k, v, o, stream=stream, **settings)()
        runs |= {(precision, "whole call"): whole, (precision, "graph"): graph_of(capture),
                 (precision, "given"): given.attend_quantised,
                 (precision, "given graph"): graph_of(given.attend_quantised), (precision, "rounding"): given.quantise}
    for name, (short, sustained, row) in in_turns(runs, args.seconds).items():
        times = {"short_ms": short, "sustained_ms": sustained, "row_ms": row}
        if name == "cudnn dense":
            result[name] = times
        else:
            result["precisions"][name[0]][name[1]] = times
    return result


def rows_of(result):
    dense = result["cudnn dense"]["short_ms"]
    runs = ("whole call", "graph", "given", "given graph")
    lines = []
    for precision, figures in result["precisions"].items():
        cells = [f"{figures[name]['short_ms']:.3f}" for name in (*runs, "rounding")]
        times = [f"{dense / figures[name]['short_ms']:.1f}" for name in runs]
        lines.append(f"| {result['shape']} | {precision} | {100 * result['density']:.1f} % | " + " | ".join(cells)
                     + f" | {dense:.2f} | " + " | ".join(times) + f" | {figures['relative_l2']:.1e} |")
    return "\n".join(lines)
