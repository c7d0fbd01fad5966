# SPDX-License-Identifier: Apache-2.0
"""Whole backward passes of the library (delta, inversion of the lists, dq, dk and dv)
beside cuDNN's dense backward pass, on the same tensors, in turns.

Rates count 10 * query rows * visited keys * head_dim operations a head: five products
of a backward pass, whatever a kernel executes.
"""
import math
import time

import torch

from lists import make_lists, visited_pairs
from timing import graph_of, time_in_turns

# name: heads, length, head_dim, and of each variant the listed blocks of 64 keys a row
# of blocks (None: dense).
CASES = {
    "wan-1.3b-480p": (12, 32760, 128, (25, 26, 51, None)),
    "cogvideox": (30, 17776, 64, (14, None)),
    "wan-14b-720p-8-heads": (8, 75600, 128, (59,)),
}
MAX_ERROR = 5e-3  # relative L2 against float64; ds is rounded to bfloat16


def reference_parts(tensors, head, lists, rows, keys):
    """float64 dq of `rows` and dk, dv of `keys` of a head, in chunks of query rows."""
    q, k, v, d_o = (tensor[0, head].double() for tensor in tensors)
    length, scale = q.shape[0], 1 / math.sqrt(q.shape[1])
    d_q = torch.zeros((len(rows), q.shape[1]), dtype=torch.float64, device="cuda")
    d_k = torch.zeros((len(keys), q.shape[1]), dtype=torch.float64, device="cuda")
    d_v = torch.zeros_like(d_k)
    chunk = 2048
    for first in range(0, length, chunk):
        own = slice(first, min(first + chunk, length))
        scores = (q[own] @ k.T) * scale
        if lists is not None:
            indices, counts = (part[0, head, first // 128:-(-own.stop // 128)].long() for part in lists)
            visible = torch.zeros((indices.shape[0], -(-length // 64)), dtype=torch.bool, device="cuda")
            listed = torch.arange(indices.shape[1], device="cuda") < counts[:, None]
            visible[torch.arange(indices.shape[0], device="cuda")[:, None].expand_as(indices)[listed],
                    indices[listed]] = True
            mask = visible.repeat_interleave(64, dim=1)[:, :length].repeat_interleave(128, dim=0)
            scores.masked_fill_(~mask[:own.stop - first], -math.inf)
        p = torch.softmax(scores, dim=1)
        del scores
        delta = ((p @ v) * d_o[own]).sum(dim=1)
        here = [(at, row - first) for at, row in enumerate(rows) if own.start <= row < own.stop]
        for at, row in here:
            slopes = p[row] * (v @ d_o[first + row] - delta[row])
            d_q[at] = scale * (slopes @ k)
        p_keys = p[:, keys]
        d_v += p_keys.T @ d_o[own]
        d_k += scale * (p_keys * (d_o[own] @ v[keys].T - delta[:, None])).T @ q[own]
    return d_q, d_k, d_v


def largest_error(tensors, found, lists, generator):
    """The largest relative L2 of dq, dk and dv, over sampled rows and keys."""
    heads, length = tensors[0].shape[1:3]
    errors, norms = [0.0] * 3, [0.0] * 3
    for head in {0, heads - 1}:
        rows, keys = (torch.randint(length, (6,), generator=generator, device="cuda").tolist() + [0, length - 1]
                      for _ in range(2))
        for i, (right, there, places) in enumerate(zip(reference_parts(tensors, head, lists, rows, keys), found,
                                                       (rows, keys, keys))):
            errors[i] += float((there[0, head, places].double() - right).square().sum())
            norms[i] += float(right.square().sum())
    return max(math.sqrt(error / norm) for error, norm in zip(errors, norms))


def cudnn_backward(q, k, v, d_o):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    inputs = [tensor.detach().requires_grad_() for tensor in (q, k, v)]
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        o = torch.nn.functional.scaled_dot_product_attention(*inputs)
    return lambda: torch.autograd.grad(o, inputs, d_o, retain_graph=True)


def measure(library, shape, args):
    heads, length, head_dim, variants = CASES[shape]
    generator = torch.Generator(device="cuda").manual_seed(args.seed)
    q, k, v, d_o = (torch.randn((1, heads, length, head_dim), device="cuda", dtype=torch.bfloat16,
                                generator=generator) for _ in range(4))
    runs, result = {}, {"shape": shape, "variants": {}, "relative_l2": 0.0}
    for blocks in variants:
        lists = None if blocks is None else make_lists(heads, length, (blocks + 0.5) / -(-length // 64), 64, False,
                                                       generator)
        o, *found = (torch.full_like(q, math.nan) for _ in range(4))
        lse = torch.full((1, heads, length), math.nan, device="cuda")

        def make(stream=None):
            return library.call(q, k, v, o, lists, (128, 64), stream=stream, lse=lse, gradients=(d_o, *found),
                                kept_bytes=int(1e9 * args.kept))

        call = make()
        begin = time.perf_counter()
        call.prepare()
        call.prepare_backward()
        prepared = time.perf_counter() - begin
        call()
        call.backward()
        error = largest_error((q, k, v, d_o), found, lists, generator)
        name = "dense" if blocks is None else f"{blocks} of {-(-length // 64)}"
        runs[name] = call.backward
        # A dense pass takes so long that launching it costs nothing.
        if blocks is not None:
            runs[name + " graph"] = graph_of(lambda stream, make=make: make(stream).backward())
        result["variants"][name] = {"pairs": visited_pairs(lists, length, 64, heads), "relative_l2": error,
                                    "prepare_s": prepared}
        result["relative_l2"] = max(result["relative_l2"], error)
    runs["cudnn dense"] = cudnn_backward(q, k, v, d_o)
    for name, times in time_in_turns(runs, args.seconds).items():
        result[name] = dict(zip(("short_ms", "sustained_ms", "row_ms"), times))
    for name, variant in result["variants"].items():
        variant["tflops"] = 10 * variant["pairs"] * head_dim / result[name]["short_ms"] * 1e-9
    result["cudnn_tflops"] = 10 * heads * length ** 2 * head_dim / result["cudnn dense"]["short_ms"] * 1e-9
    return result


def rows_of(result):
    cudnn = result["cudnn dense"]
    lines = []
    for name, variant in result["variants"].items():
        ours = result[name]
        graph = result.get(name + " graph", ours)
        lines.append(f"| {result['shape']} | {name} | {ours['short_ms']:.3f} | {graph['short_ms']:.3f} "
                     f"| {variant['tflops']:.0f} | {ours['row_ms']:.3f} | {ours['sustained_ms']:.3f} "
                     f"| {cudnn['short_ms']:.2f} | {result['cudnn_tflops']:.0f} | {cudnn['sustained_ms']:.2f} | "
                     + " | ".join(f"{cudnn[key] / timed[key]:.2f}" for timed, key in
                                  ((ours, "short_ms"), (graph, "short_ms"), (ours, "row_ms"), (ours, "sustained_ms")))
                     + f" | {variant['relative_l2']:.1e} | {variant['prepare_s']:.2f} |")
    return "\n".join(lines)


HEADER = ("| shape | visited | ms | graph ms | TFLOP/s | in a row ms | sustained ms | cuDNN dense ms | TFLOP/s "
          "| sustained ms | times | graph times | in a row | sustained | rel L2 | prepare s |\n|" + "---|" * 16)
