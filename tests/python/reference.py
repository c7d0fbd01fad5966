# SPDX-License-Identifier: Apache-2.0
"""Attention and its gradients in float64 NumPy, by their definitions, for tests of
the Python package; and the inputs that they draw.
"""
import os
import random

import numpy


def generator():
    """Fresh numbers in every run; the seed is printed, and SPARGEJIT_TEST_SEED repeats
    a run."""
    seed = int(os.environ.get("SPARGEJIT_TEST_SEED") or random.SystemRandom().randrange(2 ** 32))
    print(f"seed {seed}", flush=True)
    return numpy.random.default_rng(seed)


def to_bfloat16(values):
    """The bits of float32 values rounded to bfloat16 (nearest, ties to even)."""
    bits = numpy.ascontiguousarray(values, numpy.float32).view(numpy.uint32).astype(numpy.uint64)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)


def from_bfloat16(bits):
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32)


def as_float64(array):
    return (from_bfloat16(array) if array.dtype == numpy.uint16 else array).astype(numpy.float64)


def mask_of(lists):
    """bool [batch, q_heads, q_blocks, kv_blocks] of what the lists select."""
    indices, counts = numpy.asarray(lists.indices), numpy.asarray(lists.counts)
    mask = numpy.zeros((*counts.shape, lists.kv_blocks), bool)
    for place in numpy.ndindex(*counts.shape):
        mask[place][indices[place][:counts[place]]] = True
    return mask


def visible(q_len, kv_len, mask=None, mask_block=(128, 64), causal=False):
    """bool, which row sees which key; broadcasts to [batch, q_heads, q_len, kv_len]."""
    result = numpy.ones((1, 1, q_len, kv_len), bool)
    if mask is not None:
        rows = numpy.arange(q_len) // mask_block[0]
        keys = numpy.arange(kv_len) // mask_block[1]
        result = numpy.asarray(mask)[:, :, rows][:, :, :, keys]
    if causal:
        result = result & (numpy.arange(kv_len) <= numpy.arange(q_len)[:, None] + kv_len - q_len)
    return result


def attention(q, k, v, seen, scale=None):
    """(o, lse, p) in float64."""
    q, k, v = as_float64(q), as_float64(k), as_float64(v)
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(group, 1), v.repeat(group, 1)
    scores = (q @ k.swapaxes(2, 3)) * (q.shape[3] ** -0.5 if scale is None else scale)
    scores = numpy.where(seen, scores, -numpy.inf)
    largest = scores.max(3, keepdims=True, initial=-1e300)
    weights = numpy.exp(scores - largest)
    total = weights.sum(3, keepdims=True)
    with numpy.errstate(divide="ignore"):
        lse = numpy.where(total > 0, numpy.log(total) + largest, -numpy.inf)[..., 0]
    p = numpy.where(total > 0, weights / numpy.where(total > 0, total, 1), 0)
    return p @ v, lse, p


def gradients(q, k, v, dout, seen, scale=None):
    """(dq, dk, dv) in float64 of sum(o · dout)."""
    o, _, p = attention(q, k, v, seen, scale)
    q, k, v, dout = as_float64(q), as_float64(k), as_float64(v), as_float64(dout)
    factor = q.shape[3] ** -0.5 if scale is None else scale
    group = q.shape[1] // k.shape[1]
    kk, vv = k.repeat(group, 1), v.repeat(group, 1)
    ds = p * (dout @ vv.swapaxes(2, 3) - (dout * o).sum(3, keepdims=True)) * factor

    def shared(x):  # summed over the query heads of a key head
        return x.reshape(x.shape[0], k.shape[1], group, *x.shape[2:]).sum(2)
    return ds @ kk, shared(ds.swapaxes(2, 3) @ q), shared(p.swapaxes(2, 3) @ dout)


def relative_l2(value, expected):
    return numpy.linalg.norm(as_float64(value) - expected) / numpy.linalg.norm(expected)
