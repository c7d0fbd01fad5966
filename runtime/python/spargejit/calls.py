# SPDX-License-Identifier: Apache-2.0
"""Calls of the library: attention, selection, gradients.

Everywhere: q [batch, q_heads, q_len, head_dim]; k, v [batch, kv_heads, kv_len,
head_dim], of one type (float32, float16, bfloat16), any strides whose last is 1;
q_heads a multiple of kv_heads. Settings are an AttentionConfig, keywords with the
names of its fields, or both (the keywords win). `stream`: a raw CUDA stream in the
place of the framework's current one. What the library refuses is a ValueError
(InvalidArgumentError) or NotImplementedError (UnsupportedError) with its message.
"""
import ctypes
import struct
import sys
from collections import namedtuple

from .arrays import BFLOAT16, FLOAT16, FLOAT32, FLOAT8, INT32, framework_of
from .config import config_of
from .frame import Frame
from .shared_library import functions
from .lists import BlockLists

_has_lists = {"dense": False, "spargeattention2": True, "block_sparse": True, "topk": True, "topp": True}


def method_has_lists(method):
    """Whether attention by this method has block lists; False where it reads every
    key."""
    known = _has_lists.get(method)
    if known is None:
        result, library = ctypes.c_int32(), functions()
        library.check(library.method_has_lists(method.encode(errors="surrogateescape"), ctypes.byref(result)))
        known = _has_lists[method] = bool(result.value)
    return known


class Forward(namedtuple("Forward", "o lse lists")):
    """o, float32 log-sum-exp [batch, q_heads, q_len], and the lists used (None for a
    method that reads every key)."""
    __slots__ = ()


def _needs_gradient(*tensors):
    return any(getattr(tensor, "requires_grad", False) for tensor in tensors) and sys.modules["torch"].is_grad_enabled()


def attention(q, k, v, config=None, *, out=None, lists=None, block_mask=None, top_k_by_head=None, top_p_by_head=None,
              stream=None, **settings):
    """softmax(scale · q kᵀ restricted to the selected blocks) v, of q's shape and type.

    out: memory for it. lists, block_mask: for method "block_sparse". top_k_by_head,
    top_p_by_head: float32 [1], [q_heads] or [batch, q_heads] in place of the shares.
    Tensors of PyTorch that need gradients go to spargejit.torch.attention.
    """
    if _needs_gradient(q, k, v):
        from .torch import attention as differentiable
        if out is not None or stream is not None:
            raise ValueError("out, stream: expected neither with tensors that need gradients, got one")
        return differentiable(q, k, v, config, lists=lists, block_mask=block_mask, top_k_by_head=top_k_by_head,
                              top_p_by_head=top_p_by_head, **settings)
    if out is None:
        out = framework_of(q).empty(q, q.shape)
    attend(out, q, k, v, config_of(config, settings), stream, lists, block_mask, top_k_by_head, top_p_by_head)
    return out


def attend(o, q, k, v, config, stream=None, lists=None, block_mask=None, top_k_by_head=None, top_p_by_head=None,
           framework=None):
    """attention() into `o`, whether or not anything needs gradients."""
    frame = Frame(q, framework)
    library = functions()
    status = library.attention(
        *frame.call(o, q, k, v), frame.config(config, q, stream, lists, block_mask, top_k_by_head, top_p_by_head), 0)
    if status:
        library.check(status)


def block_sparse_attention(q, k, v, mask, **settings):
    """attention() with blocks that the caller chose: BlockLists, or a bool tensor
    [batch, q_heads, q_blocks, kv_blocks] with the setting mask_block."""
    settings.setdefault("method", "block_sparse")
    if isinstance(mask, BlockLists):
        settings.setdefault("mask_block", mask.mask_block)
        return attention(q, k, v, lists=mask, **settings)
    return attention(q, k, v, block_mask=mask, **settings)


def _new_lists(frame, q, k, config):
    batch, heads, q_len, _ = q.shape
    block_q, block_kv = config.mask_block
    if block_q <= 0 or block_kv <= 0:
        raise ValueError(f"mask_block: expected two positive numbers, got {config.mask_block}")
    rows, blocks = (batch, heads, -(-q_len // block_q)), -(-k.shape[2] // block_kv)
    return BlockLists(frame.framework.empty(q, (*rows, blocks), INT32), frame.framework.empty(q, rows, INT32),
                      config.mask_block, q_len, k.shape[2])


def _check_rank(q, k):
    for name, array in (("q", q), ("k", k)):
        framework_of(array, name)  # or a TypeError
        if len(array.shape) != 4:
            raise ValueError(f"{name}: expected 4 dimensions [batch, heads, length, head_dim], got {len(array.shape)}")


def select_blocks(q, k, config=None, *, out=None, top_k_by_head=None, top_p_by_head=None, stream=None, **settings):
    """The lists that attention() of such a config would select. out: BlockLists that
    an earlier call returned, to be written again."""
    config = config_of(config, settings)
    _check_rank(q, k)
    frame = Frame(q)
    lists = _new_lists(frame, q, k, config) if out is None else out
    library = functions()
    library.check(library.select_blocks(
        frame.lists("lists", lists, is_written=True), frame.tensor("q", q), frame.tensor("k", k),
        frame.config(config, q, stream, None, None, top_k_by_head, top_p_by_head)))
    return lists


def attention_forward(q, k, v, config=None, *, lists=None, block_mask=None, top_k_by_head=None, top_p_by_head=None,
                      stream=None, **settings):
    """attention() that keeps what attention_backward() needs: a Forward."""
    config = config_of(config, settings)
    _check_rank(q, k)
    frame = Frame(q)
    o = frame.framework.empty(q, q.shape)
    lse = frame.framework.empty(q, q.shape[:3], FLOAT32)
    made = None
    if lists is None and method_has_lists(config.method):
        made = _new_lists(frame, q, k, config)
    library = functions()
    library.check(library.attention(
        *frame.call(o, q, k, v), frame.config(config, q, stream, lists, block_mask, top_k_by_head, top_p_by_head),
        frame.outputs(frame.tensor("lse", lse), frame.lists("lists", made))))
    return Forward(o, lse, made if lists is None else lists)


class Quantised(namedtuple("Quantised", "q k v v_scales q_factors k_factors dtype")):
    """q, k and v in eight bits (spargejit/quantised.h: QuantisedTensors); NumPy's are
    uint8 with the bits. dtype: "bfloat16" or "float16", that of the output."""
    __slots__ = ()


_CODES_OF_WIDE = {"bfloat16": BFLOAT16, "float16": FLOAT16}


def _check_quantised(name, tensors):
    if not isinstance(tensors, Quantised):
        raise TypeError(f"{name}: expected a Quantised, got {type(tensors).__name__}")
    if tensors.dtype not in _CODES_OF_WIDE:
        raise ValueError(f"{name}.dtype: expected 'bfloat16' or 'float16', got {tensors.dtype!r}")


def _quantised(frame, name, tensors, is_written=False):
    return frame.quantised(name, tensors[:6], _CODES_OF_WIDE[tensors.dtype], is_written)


def quantise(q, k, v, config=None, *, out=None, stream=None, **settings):
    """q, k and v rounded to eight bits, for attention_quantised(): a Quantised. Of the
    settings `scale` and `threads` count. out: a Quantised that an earlier call
    returned, to be written again."""
    config = config_of(config, settings)
    _check_rank(q, k)
    frame = Frame(q)
    if out is None:
        empty = frame.framework.empty
        batch, kv_heads, kv_len, head_dim = k.shape
        on_gpu = getattr(q, "is_cuda", False)
        image = (batch, kv_heads, -(-kv_len // 16) * (head_dim // 8 + 1), 128) if on_gpu else tuple(k.shape)
        name = str(q.dtype).rpartition(".")[2]
        # Of other types the library says that they are not rounded.
        dtype = name if name in _CODES_OF_WIDE else "bfloat16"
        out = Quantised(empty(q, tuple(q.shape), FLOAT8), empty(q, tuple(k.shape), FLOAT8), empty(q, image, FLOAT8),
                        empty(q, (batch, kv_heads, head_dim), FLOAT32), empty(q, tuple(q.shape[:2]), FLOAT32),
                        empty(q, (batch, kv_heads), FLOAT32), dtype)
    _check_quantised("out", out)
    library = functions()
    library.check(library.quantise(_quantised(frame, "out", out, is_written=True), *_inputs(frame, q, k, v),
                                   frame.config(config, q, stream)))
    return out


def attention_quantised(tensors, config=None, *, out=None, lists=None, block_mask=None, stream=None, **settings):
    """attention() of a Quantised, with a `precision` of eight bits and a method that
    selects nothing: "dense", or "block_sparse" with lists or a mask. In NumPy a result in
    bfloat16 is uint16 with its bits; `out` may be of ml_dtypes.bfloat16."""
    config = config_of(config, settings)
    _check_quantised("tensors", tensors)
    frame = Frame(tensors.q, name="tensors.q")
    if out is None:
        out = frame.framework.empty(tensors.q, tuple(tensors.q.shape), _CODES_OF_WIDE[tensors.dtype])
    library = functions()
    library.check(library.attention_quantised(
        frame.tensor("o", out), _quantised(frame, "tensors", tensors),
        frame.config(config, tensors.q, stream, lists, block_mask), 0))
    return out


def attention_backward(q, k, v, forward, dout, config=None, *, dlse=None, out=None, stream=None, **settings):
    """(dq, dk, dv) of a loss, given dout = dL/do and dlse = dL/dlse (None: zeros), for
    the lists of `forward` held fixed. out: memory for the three."""
    config = config_of(config, settings)
    frame = Frame(q)
    if not isinstance(forward, Forward):
        raise TypeError(f"forward: expected the Forward of attention_forward(), got {type(forward).__name__}")
    if out is None:
        for name, tensor in (("k", k), ("v", v)):
            framework_of(tensor, name)  # or a TypeError
        out = [frame.framework.empty(like, like.shape) for like in (q, k, v)]
    elif not isinstance(out, (tuple, list)) or len(out) != 3:
        raise TypeError(f"out: expected three tensors, for dq, dk and dv, got {type(out).__name__}"
                        f"{f' of {len(out)}' if isinstance(out, (tuple, list)) else ''}")
    dq, dk, dv = out
    saved = frame.saved(frame.tensor("o", forward.o, is_read=True), frame.tensor("lse", forward.lse, is_read=True),
                        frame.lists("lists", forward.lists))
    library = functions()
    library.check(library.attention_backward(
        frame.gradients(frame.tensor("dq", dq), frame.tensor("dk", dk), frame.tensor("dv", dv)),
        frame.tensor("q", q), frame.tensor("k", k), frame.tensor("v", v), saved, frame.tensor("dout", dout),
        frame.config(config, q, stream), frame.tensor("dlse", dlse)))
    return dq, dk, dv


def distillation_loss(student, teacher, *, loss_scale=1.0, gradient=True, stream=None):
    """(loss, gradient): loss_scale · mean of (student - teacher)², a float32 tensor of
    one element, and its gradient with respect to student (None with gradient=False)."""
    frame = Frame(student, name="student")
    try:
        loss_scale = float(loss_scale)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"loss_scale: expected a number, got {loss_scale!r}") from None
    views = frame.tensor("q", student, label="student"), frame.tensor("k", teacher, label="teacher")
    loss = frame.framework.empty(student, (1,), FLOAT32)
    slope = frame.framework.empty(student, student.shape) if gradient else None
    library = functions()
    library.check(library.distillation_loss(
        frame.tensor("lse", loss), frame.tensor("dq", slope), *views, loss_scale,
        frame.config(config_of(None, {}), student, stream)))
    return loss, slope


def _inputs(frame, q, k, v):
    return frame.tensor("q", q), frame.tensor("k", k), frame.tensor("v", v)


def prepare(q, k, v, config=None, *, lists=None, block_mask=None, stream=None, **settings):
    """Compiles and loads what such an attention() needs, so that a CUDA graph can
    capture it; runs nothing."""
    config = config_of(config, settings)
    frame = Frame(q)
    library = functions()
    library.check(library.prepare(*_inputs(frame, q, k, v), frame.config(config, q, stream, lists, block_mask), 0))


def prepare_backward(q, k, v, config=None, *, stream=None, **settings):
    """The same for attention_backward()."""
    frame = Frame(q)
    library = functions()
    library.check(library.prepare_backward(*_inputs(frame, q, k, v),
                                           frame.config(config_of(config, settings), q, stream)))


def workspace_bytes(q, k, v, config=None, *, backward=False, **settings):
    """Bytes on the device that such a call keeps beside its arguments and results."""
    frame = Frame(q)
    result = ctypes.c_int64()
    library = functions()
    function = library.backward_workspace_bytes if backward else library.workspace_bytes
    library.check(function(*_inputs(frame, q, k, v), frame.config(config_of(config, settings), q),
                           ctypes.byref(result)))
    return result.value


def tuning_of(q, k, v, config=None, **settings):
    """Which configuration such a call's attention kernel has: a dict of `quality`,
    `distance`, `config` and `problem` (tuning.h: TuningInfo)."""
    frame = Frame(q)
    layout = struct.Struct("@NdPPP")
    buffer = ctypes.create_string_buffer(layout.pack(layout.size, 0.0, 0, 0, 0), layout.size)
    library = functions()
    library.check(library.tuning_of(*_inputs(frame, q, k, v), frame.config(config_of(config, settings), q),
                                    ctypes.addressof(buffer)))
    _, distance, *texts = layout.unpack(buffer.raw)
    quality, tuned, problem = (ctypes.string_at(text).decode() for text in texts)
    return {"quality": quality, "distance": distance, "config": tuned, "problem": problem}
