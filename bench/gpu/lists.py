# SPDX-License-Identifier: Apache-2.0
"""Random block lists on the device, and how much they visit."""
import torch


def make_lists(heads, length, density, block, unequal, generator):
    """int32 indices and counts on the device: random ascending blocks."""
    rows, blocks = -(-length // 128), -(-length // block)
    wanted = max(1, int(density * blocks))  # 5 %: 25 of 512, 59 of 1182
    counts = torch.full((1, heads, rows), wanted, dtype=torch.int64, device="cuda")
    if unequal:  # coefficient of variation 0.5
        factor = 1 + 0.5 * torch.randn(counts.shape, device="cuda", generator=generator)
        counts = (counts * factor).round().long().clamp(1, blocks)
    capacity = int(counts.max())
    indices = torch.empty((1, heads, rows, capacity), dtype=torch.int32, device="cuda")
    for head in range(heads):
        order = torch.rand((rows, blocks), device="cuda", generator=generator).argsort(dim=1)[:, :capacity]
        unused = torch.arange(capacity, device="cuda") >= counts[0, head, :, None]
        order = order.masked_fill(unused, blocks).sort(dim=1).values
        indices[0, head] = order.masked_fill(order == blocks, -1).int()
    return indices, counts.int()


def visited_pairs(lists, length, block, heads):
    """Pairs of a query row and a key that the lists visit, over all heads."""
    if lists is None:
        return float(heads) * length * length
    indices, counts = lists
    keys = torch.where(indices >= 0, (length - indices.long() * block).clamp(max=block), 0).sum(dim=3)
    rows = torch.full((counts.shape[2],), 128, device="cuda", dtype=torch.int64)
    rows[-1] = length - 128 * (counts.shape[2] - 1)
    return float((keys * rows).sum())
