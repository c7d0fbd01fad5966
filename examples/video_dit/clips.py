# SPDX-License-Identifier: Apache-2.0
"""Clips that the example makes itself: discs and rings of random colours that move
and bounce in front of a drifting grating.
"""
import math

import torch


def make_clips(count, frames, size, generator, device):
    """float32 [count, frames, 3, size, size] in [-1, 1]."""
    def uniform(low, high, *shape):
        return low + (high - low) * torch.rand(shape, generator=generator, device=device)
    axis = torch.arange(size, device=device) / size
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    times = torch.arange(frames, device=device) / frames
    angle, waves, speed = uniform(0, 2 * math.pi, count), uniform(2, 5, count), uniform(-2, 2, count)
    direction = (angle.cos()[:, None, None] * x + angle.sin()[:, None, None] * y)[:, None]
    phase = 2 * math.pi * (waves[:, None, None, None] * direction + (speed[:, None] * times)[:, :, None, None])
    colours = uniform(-0.6, 0.6, count, 2, 3, 1, 1)
    share = (0.5 + 0.5 * phase.sin())[:, :, None]
    clips = share * colours[:, None, 0] + (1 - share) * colours[:, None, 1]
    for kind in range(3):
        place, velocity = uniform(0, 1, count, 2), uniform(-1.5, 1.5, count, 2)
        # A triangle wave bounces between 0 and 1.
        path = (place[:, None] + velocity[:, None] * times[:, None]) % 2
        path = 1 - (path - 1).abs()
        distance = ((x - path[..., 0, None, None]) ** 2 + (y - path[..., 1, None, None]) ** 2).sqrt()
        radius = uniform(0.08, 0.2, count, 1, 1, 1)
        edge = (radius - distance) if kind < 2 else (0.05 - (radius - distance).abs())
        cover = (edge * 40).sigmoid()[:, :, None]
        clips = cover * uniform(-1, 1, count, 1, 3, 1, 1) + (1 - cover) * clips
    return clips


def to_tokens(clips, patch):
    """[count, tokens, 3 patch²]: frame by frame, row by row."""
    count, frames, channels, height, width = clips.shape
    tokens = clips.reshape(count, frames, channels, height // patch, patch, width // patch, patch)
    return tokens.permute(0, 1, 3, 5, 2, 4, 6).reshape(count, -1, channels * patch * patch)


def to_clips(tokens, frames, size, patch):
    """The way back."""
    side = size // patch
    clips = tokens.reshape(tokens.shape[0], frames, side, side, 3, patch, patch)
    return clips.permute(0, 1, 4, 2, 5, 3, 6).reshape(tokens.shape[0], frames, 3, size, size)
