#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times attention on the card beside cuDNN's dense attention (and FlexAttention's,
with --flex): the same tensors, one process, in turns; with --select, whole calls
that select their blocks, beside the same attention with lists that are given; and
with --fp8 whole calls in eight bits (eight_bits.py).

Every figure is the median of at least 20 launches by events. "short": bursts of
some milliseconds with rests between them, so that the card is at its full clock,
each launch between events of its own; "in a row": like bursts, with events around
the whole of one, the time shared out, as work of one stream follows each other;
"sustained": the launches of a second or so without a rest. Rates count
4 * query rows * visited keys * head_dim operations a head, each ragged block by
the keys it has. Sampled rows are compared with float64 first.

    run_gpu_bench.py --library FOLDER [--only NAME] [--seconds S] [--output FILE]
"""
import argparse
import json
import math
import os
import sys
import time

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import eight_bits  # noqa: E402
import gradients  # noqa: E402
from library import Library  # noqa: E402
from lists import make_lists, visited_pairs  # noqa: E402
from timing import graph_of, time_in_turns  # noqa: E402

# name: heads, length, head_dim
SHAPES = {
    "wan-1.3b-480p": (12, 32760, 128),
    "wan-14b-720p-8-heads": (8, 75600, 128),
    "wan-14b-720p": (40, 75600, 128),
    "hunyuan-video": (24, 115456, 128),
    "cogvideox": (30, 17776, 64),
    "flux": (24, 4608, 128),
}
# shape: top_k and top_p that give 95 % sparsity on a trained model (SpargeAttention2).
SELECTIONS = {"wan-1.3b-480p": (0.03, 0.2), "wan-14b-720p": (0.03, 0.16)}
DENSITIES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
MAX_ERROR = 3e-3  # relative L2 against float64


def make_cases(only):
    """(shape, density or None for dense, mask block, unequal counts), the ones that
    promises are about first."""
    cases = []
    for shape in SHAPES:
        # Dense attention of the largest shapes takes a fifth of a second a launch.
        is_large = SHAPES[shape][0] * SHAPES[shape][1] ** 2 > 1e11
        cases.append((shape, None, 64, False))
        cases += [(shape, density, 64, False) for density in ((0.05, 0.1) if is_large else DENSITIES)]
        cases += [(shape, 0.05, block, False) for block in ((16,) if is_large else (16, 32, 128))]
        cases += [(shape, 0.05, 64, True)]
    return [case for case in cases if not only or only in case[0]]


def largest_error(q, k, v, o, lists, block, generator):
    """Relative L2 of sampled rows against float64."""
    heads, length = q.shape[1], q.shape[2]
    error = norm = 0.0
    for head in {0, heads - 1}:
        for row in torch.randint(length, (6,), generator=generator, device="cuda").tolist() + [0, length - 1]:
            scores = (k[0, head].double() @ q[0, head, row].double()) / math.sqrt(q.shape[3])
            if lists is not None:
                listed = lists[0][0, head, row // 128]
                visible = torch.zeros(-(-length // block), dtype=torch.bool, device="cuda")
                visible[listed[listed >= 0].long()] = True
                scores = scores.masked_fill(~visible.repeat_interleave(block)[:length], -math.inf)
            expected = torch.softmax(scores, 0) @ v[0, head].double()
            error += float((o[0, head, row].double() - expected).square().sum())
            norm += float(expected.square().sum())
    return math.sqrt(error / norm)


def cudnn_dense(q, k, v):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def run():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            torch.nn.functional.scaled_dot_product_attention(q, k, v)
    return run


def flex_attention(q, k, v, lists, block):
    """FlexAttention with the same blocks; its blocks have at least 128 keys."""
    from torch.nn.attention import flex_attention as flex
    if lists is None or block != 128:
        return None
    indices, counts = lists
    blocks = -(-q.shape[2] // block)
    padded = torch.zeros((*indices.shape[:3], blocks), dtype=torch.int32, device="cuda")
    padded[..., :indices.shape[3]] = indices.clamp(min=0)
    nothing = torch.zeros_like(counts)
    mask = flex.BlockMask.from_kv_blocks(nothing, torch.zeros_like(padded), counts, padded, BLOCK_SIZE=(128, block),
                                         seq_lengths=(q.shape[2], q.shape[2]))
    compiled = torch.compile(flex.flex_attention)
    return lambda: compiled(q, k, v, block_mask=mask)


def measure(library, case, args):
    shape, density, block, unequal = case
    heads, length, head_dim = SHAPES[shape]
    generator = torch.Generator(device="cuda").manual_seed(args.seed)
    q, k, v = (torch.randn((1, heads, length, head_dim), device="cuda", dtype=torch.bfloat16, generator=generator)
               for _ in range(3))
    o = torch.full_like(q, math.nan)
    lists = None if density is None else make_lists(heads, length, density, block, unequal, generator)
    call = library.call(q, k, v, o, lists, (128, block))
    begin = time.perf_counter()
    call.prepare()
    prepared = time.perf_counter() - begin
    call()
    error = largest_error(q, k, v, o, lists, block, generator)
    runs = {"spargejit": call, "cudnn dense": cudnn_dense(q, k, v)}
    flex = flex_attention(q, k, v, lists, block) if args.flex else None
    if flex:
        try:
            flex()
            runs["flex"] = flex
        except Exception as failure:  # of a compiler that this machine may lack
            print(f"no FlexAttention: {str(failure).splitlines()[0]}", file=sys.stderr, flush=True)
    times = time_in_turns(runs, args.seconds)
    pairs = visited_pairs(lists, length, block, heads)
    operations = 4 * pairs * head_dim
    result = {"shape": shape, "heads": heads, "length": length, "head_dim": head_dim,
              "density": None if density is None else pairs / (heads * length * length),
              "mask_block": block, "unequal": unequal, "relative_l2": error, "prepare_s": prepared}
    for name, (short, sustained, row) in times.items():
        work = 4 * heads * length * length * head_dim if name == "cudnn dense" else operations
        result[name] = {"short_ms": short, "sustained_ms": sustained, "row_ms": row,
                        "row_tflops": work / row * 1e-9, "short_tflops": work / short * 1e-9,
                        "sustained_tflops": work / sustained * 1e-9}
    result["faster_than_cudnn_dense"] = [times["cudnn dense"][i] / times["spargejit"][i] for i in range(3)]
    return result


def token_like(heads, length, head_dim, likeness, generator):
    """Tokens of a block alike, so that scores of blocks differ as on real inputs."""
    block = torch.randn((1, heads, -(-length // 64), head_dim), device="cuda", generator=generator)
    x = torch.randn((1, heads, length, head_dim), device="cuda", generator=generator)
    x += likeness * block.repeat_interleave(64, dim=2)[:, :, :length]
    return x.to(torch.bfloat16)


def select_sparsely(library, shape, block, generator):
    """q, k, v, o, the call and its lists, of tokens so alike that at least 95 % of
    the blocks are left out, as the paper finds on a trained model."""
    heads, length, head_dim = SHAPES[shape]
    likeness = 0.6
    while True:
        q, k, v = (token_like(heads, length, head_dim, likeness, generator) for _ in range(3))
        o = torch.full_like(q, math.nan)
        call = library.call(q, k, v, o, mask_block=(128, block), select=SELECTIONS[shape])
        call.prepare()
        lists = call.select()
        if visited_pairs(lists, length, block, heads) <= 0.05 * heads * length ** 2:
            return q, k, v, o, call, lists
        likeness *= 1.05


def measure_selection(library, shape, block, args):
    """Whole calls, with lists selected, against attention with those lists given."""
    heads, length, head_dim = SHAPES[shape]
    generator = torch.Generator(device="cuda").manual_seed(args.seed)
    q, k, v, o, whole, lists = select_sparsely(library, shape, block, generator)
    given = library.call(q, k, v, o, lists, (128, block))
    given.prepare()
    whole()
    error = largest_error(q, k, v, o, lists, block, generator)

    def capture(stream):
        library.call(q, k, v, o, mask_block=(128, block), select=SELECTIONS[shape], stream=stream)()
    runs = {"whole call": whole, "graph": graph_of(capture), "lists given": given, "cudnn dense": cudnn_dense(q, k, v)}
    times = time_in_turns(runs, args.seconds)
    result = {"shape": shape, "mask_block": block, "density": visited_pairs(lists, length, block, heads)
              / (heads * length * length), "relative_l2": error}
    for name, (short, sustained, row) in times.items():
        result[name] = {"short_ms": short, "sustained_ms": sustained, "row_ms": row}
    result["selection_ms"] = [times["graph"][i] - times["lists given"][i] for i in range(2)]
    return result


def selection_row_of(result):
    dense = result["cudnn dense"]["short_ms"]
    cells = [f"{result[name]['short_ms']:.3f}" for name in ("whole call", "graph", "lists given")]
    return (f"| {result['shape']} | {result['mask_block']} | {100 * result['density']:.1f} % | " + " | ".join(cells)
            + f" | {result['selection_ms'][0]:.3f} | {dense:.2f} | {dense / result['whole call']['short_ms']:.1f} "
            f"| {dense / result['graph']['short_ms']:.1f} | {result['relative_l2']:.1e} |")


def measure_eight_bits(library, shape, args):
    return eight_bits.measure(library, shape, args, sparse_call=select_sparsely, shapes=SHAPES,
                              selections=SELECTIONS, error_of=largest_error, dense=cudnn_dense, graph_of=graph_of,
                              in_turns=time_in_turns, visited=visited_pairs)


SELECTION_HEADER = ("| shape | block | visited | whole call ms | graph ms | lists given ms | selection ms "
                    "| cuDNN dense ms | times | graph times | rel L2 |\n|" + "---|" * 11)


def row_of(result):
    density = "dense" if result["density"] is None else f"{100 * result['density']:.1f} %"
    ours, cudnn = result["spargejit"], result["cudnn dense"]
    flex = f"{result['flex']['short_ms']:.3f}" if "flex" in result else ""
    return (f"| {result['shape']} | {density}{' unequal' if result['unequal'] else ''} | {result['mask_block']} "
            f"| {ours['short_ms']:.3f} | {ours['short_tflops']:.0f} | {ours['row_tflops']:.0f} "
            f"| {ours['sustained_tflops']:.0f} | {cudnn['short_ms']:.2f} | {cudnn['short_tflops']:.0f} "
            + "".join(f"| {result['faster_than_cudnn_dense'][i]:.2f} " for i in (0, 2, 1)) +
            f"| {flex} | {result['relative_l2']:.1e} | {result['prepare_s']:.2f} |")


HEADER = ("| shape | visited | block | ms | TFLOP/s | in a row | sustained | cuDNN dense ms | TFLOP/s "
          "| times | in a row | sustained | Flex ms | rel L2 | prepare s |\n|" + "---|" * 15)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", dest="folder", required=True,
                        help="folder of libspargejit.so")
    parser.add_argument("--only", default="", help="shapes whose name holds this")
    parser.add_argument("--seconds", type=float, default=0.5, help="of sustained load before its figure (default 0.5)")
    parser.add_argument("--budget", type=float, default=480, help="seconds after which no case is begun (default 480)")
    parser.add_argument("--select", action="store_true", help="calls that select their blocks, in place of the rest")
    parser.add_argument("--backward", action="store_true", help="backward passes, in place of the rest")
    parser.add_argument("--kept", type=float, default=0,
                        help="GB in which a backward pass may keep gradients of scores (default 0)")
    parser.add_argument("--fp8", action="store_true", help="calls in eight bits, in place of the rest")
    parser.add_argument("--flex", action="store_true", help="also FlexAttention, for mask blocks of 128")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--output", help="JSON file; the table goes beside it with .md")
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    library = Library(args.folder)
    properties = torch.cuda.get_device_properties(0)
    head = (f"spargejit {library.version()}, torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, "
            f"{properties.name}, {properties.multi_processor_count} multiprocessors, seed {args.seed}")
    if args.backward:
        cases = [(shape,) for shape in gradients.CASES if args.only in shape]
        header, to_row, run_case = gradients.HEADER, gradients.rows_of, gradients.measure
    elif args.fp8:
        cases = [(shape,) for shape in SELECTIONS if args.only in shape]
        header, to_row, run_case = eight_bits.HEADER, eight_bits.rows_of, measure_eight_bits
    elif args.select:
        cases = [(shape, block) for shape in SELECTIONS for block in (64, 16) if args.only in shape]
        header, to_row, run_case = SELECTION_HEADER, selection_row_of, measure_selection
    else:
        cases = [(case,) for case in make_cases(args.only)]
        header, to_row, run_case = HEADER, row_of, measure
    print(head + "\n\n" + header, flush=True)
    results, failures, begin = [], 0, time.monotonic()
    for case in cases:
        if time.monotonic() - begin > args.budget:
            print(f"stopped after {args.budget:.0f} s; not measured from {case} on", flush=True)
            break
        try:
            results.append(run_case(library, *case, args))
        except (RuntimeError, torch.OutOfMemoryError) as failure:
            print(f"| {case} failed: {failure}", flush=True)
            failures += 1
            continue
        print(to_row(results[-1]), flush=True)
        failures += not results[-1]["relative_l2"] < (gradients.MAX_ERROR if args.backward else
                                                          eight_bits.MAX_ERROR if args.fp8 else MAX_ERROR)
        torch.cuda.empty_cache()
    if args.output:
        with open(args.output, "w", encoding="utf-8") as file:
            json.dump({"head": head, "results": results}, file, indent=1)
        with open(os.path.splitext(args.output)[0] + ".md", "w", encoding="utf-8") as file:
            file.write("\n".join([head, "", header] + [to_row(result) for result in results]) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
