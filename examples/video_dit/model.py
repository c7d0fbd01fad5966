# SPDX-License-Identifier: Apache-2.0
"""A small video transformer in the manner of Wan: 3-D rotary embedding, normalised
queries and keys, modulation by the time of the flow.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F


def rotary_embedding(grid, head_dim, device):
    """cos and sin [tokens, head_dim / 2] for tokens on a grid (frames, rows, columns):
    a fourth of the frequencies for time, the rest shared by rows and columns."""
    quarter = head_dim // 8
    angles = []
    places = torch.meshgrid(*(torch.arange(n, device=device, dtype=torch.float32) for n in grid), indexing="ij")
    for place, count in zip(places, (head_dim // 2 - 2 * (3 * quarter // 2), 3 * quarter // 2, 3 * quarter // 2)):
        frequencies = 100.0 ** (-torch.arange(count, device=device) / count)
        angles.append(place.flatten()[:, None] * frequencies)
    angles = torch.cat(angles, 1)
    return angles.cos(), angles.sin()


def rotate(x, rotation):
    cos, sin = (part.to(x.dtype) for part in rotation)
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width, elementwise_affine=False) for _ in range(2))
        self.modulation = nn.Linear(width, 6 * width)
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm_q, self.norm_k = nn.RMSNorm(width // heads), nn.RMSNorm(width // heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, time, rotation, attend):
        shift_a, scale_a, gate_a, shift_b, scale_b, gate_b = self.modulation(time)[:, None].chunk(6, -1)
        q, k, v = self.qkv(self.norms[0](x) * (1 + scale_a) + shift_a).unflatten(-1, (3, self.heads, -1)).unbind(2)
        q, k = (rotate(norm(y).transpose(1, 2), rotation).to(v.dtype)
                for norm, y in ((self.norm_q, q), (self.norm_k, k)))
        o = attend(q, k, v.transpose(1, 2))
        x = x + gate_a * self.out(o.transpose(1, 2).flatten(2))
        return x + gate_b * self.down(F.gelu(self.up(self.norms[1](x) * (1 + scale_b) + shift_b), approximate="tanh"))


class VideoTransformer(nn.Module):
    """Velocity of noisy tokens [batch, tokens, channels] at times in (0, 1). `attend`
    is what attention is: (q, k, v, index of the block) -> o."""

    def __init__(self, channels, grid, width, heads, depth):
        super().__init__()
        self.grid, self.head_dim, self.width = grid, width // heads, width
        self.enter, self.leave = nn.Linear(channels, width), nn.Linear(width, channels)
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.attend = lambda q, k, v, _: F.scaled_dot_product_attention(q, k, v)

    def forward(self, x, t):
        frequencies = torch.exp(-math.log(1e4) * torch.arange(self.width // 2, device=x.device) / (self.width // 2))
        angles = 1000 * t[:, None] * frequencies
        time = self.time(torch.cat([angles.cos(), angles.sin()], 1))
        rotation = rotary_embedding(self.grid, self.head_dim, x.device)
        x = self.enter(x)
        for index, block in enumerate(self.blocks):
            x = block(x, time, rotation, lambda q, k, v, index=index: self.attend(q, k, v, index))
        return self.leave(self.norm(x))
