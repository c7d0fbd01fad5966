#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times one transformer block of Wan 2.1's 1.3B model in training, forward and
backward in bfloat16, with sparse attention and with cuDNN's dense attention, and the
attention of both by itself. Selection is part of the sparse attention (method "topk"
with 5 % of the blocks, since random tokens have no block that stands out).

Every figure is the median over rounds of the time of a launch within a row of them,
all kinds in turns.

    SPARGEJIT_LIBRARY=libspargejit.so PYTHONPATH=runtime/python run_block_bench.py [--tokens N] [--output FILE]
"""
import argparse
import json
import statistics
import sys
import time

import spargejit
import spargejit.torch as sparse
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

WIDTH, HEADS, HIDDEN = 1536, 12, 8960


class Block(nn.Module):
    """Self-attention with normalised q and k, and a feed-forward net; without the
    modulation, the rotary embedding and the cross attention, which are the same in
    both kinds and add to neither."""

    def __init__(self, attend):
        super().__init__()
        self.attend = attend
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH, elementwise_affine=False) for _ in range(2))
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm_q, self.norm_k = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.norms[0](x)).chunk(3, dim=-1)
        q, k, v = (y.unflatten(2, (HEADS, -1)).transpose(1, 2) for y in (self.norm_q(q), self.norm_k(k), v))
        x = x + self.out(self.attend(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh"))


def dense(q, k, v):
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return F.scaled_dot_product_attention(q, k, v)


def sparsely(config):
    return lambda q, k, v: sparse.attention(q, k, v, config)


def both_passes(function, arguments, slope, parameters=()):
    def run():
        torch.autograd.grad(function(*arguments), (*arguments, *parameters), slope)
    return run


def forward_alone(function, arguments):
    def run():
        with torch.no_grad():
            function(*arguments)
    return run


def median_times(runs, rounds, launches):
    """{name: milliseconds a launch}, in turns: rows of launches between two events,
    with a rest before each row, so that the host is ahead of the card as in training."""
    times = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(rounds):
        for name, run in runs.items():
            torch.cuda.synchronize()
            time.sleep(0.03)
            run()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(launches):
                run()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) / launches)
    return {name: statistics.median(values) for name, values in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=32760)
    parser.add_argument("--density", type=float, default=0.05)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--launches", type=int, default=4)
    parser.add_argument("--kept", type=float, default=1.6,
                        help="GB in which a backward pass keeps gradients of scores, in the row that says so (default "
                             "1.6: all of 32 760 tokens at 5 %% in one round)")
    parser.add_argument("--output", help="JSON file")
    args = parser.parse_args()
    seed = int(time.time())
    torch.manual_seed(seed)
    config = spargejit.AttentionConfig(method="topk", top_k=args.density)
    options = {"device": "cuda", "dtype": torch.bfloat16}
    q, k, v = (torch.randn(1, HEADS, args.tokens, WIDTH // HEADS, **options).requires_grad_() for _ in range(3))
    slope = torch.randn_like(q)
    lists = sparse.select_blocks(q, k, config)
    kinds = {"sparse": sparsely(config), "cudnn": dense}
    runs = {}
    for name, attend in kinds.items():
        runs[f"attention forward, {name}"] = forward_alone(attend, (q, k, v))
        runs[f"attention, {name}"] = both_passes(attend, (q, k, v), slope)
    runs["attention, scores' gradients kept"] = both_passes(
        sparsely(config.replaced(kept_bytes=int(1e9 * args.kept))), (q, k, v), slope)
    given = sparse.block_sparse_attention
    runs["attention, lists given"] = both_passes(lambda *qkv: given(*qkv, lists), (q, k, v), slope)
    x = torch.randn(1, args.tokens, WIDTH, **options).requires_grad_()
    blocks = {name: Block(attend).to(**options) for name, attend in kinds.items()}
    for name, block in blocks.items():
        runs[f"block, {name}"] = both_passes(block, (x,), torch.randn_like(x), tuple(block.parameters()))
    times = median_times(runs, args.rounds, args.launches)
    print(f"spargejit {spargejit.__version__}, torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, "
          f"{torch.cuda.get_device_name()}, {args.tokens} tokens, density {100 * lists.density():.2f} %, seed {seed}\n")
    print("| forward and backward | ms |\n|---|---|")
    for name, value in times.items():
        print(f"| {name} | {value:.3f} |")
    for part in ("attention forward", "attention", "block"):
        print(f"{part}: {times[part + ', cudnn'] / times[part + ', sparse']:.1f} times faster")
    if args.output:
        with open(args.output, "w", encoding="utf-8") as file:
            json.dump({"seed": seed, "density": lists.density(), "milliseconds": times}, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
