# SPDX-License-Identifier: Apache-2.0
"""The ops `spargejit::attention`, `spargejit::attention_backward` and
`spargejit::select_blocks`, and the functions in front of them.

A call that needs no gradient, no tracing and no mode goes to the library past the
dispatcher, which would take longer than all the rest on the host.
"""
import functools

import torch
from torch import library as op_library
from torch.autograd import forward_ad

from .. import calls
from ..arrays import TorchTensors
from ..config import AttentionConfig, config_of
from ..lists import BlockLists

# The fields of AttentionConfig, in this order, as arguments of every op.
_FIELDS = tuple(AttentionConfig.FIELDS)
_SETTINGS = ("str method, float top_k, float top_p, int[] mask_block, bool causal, float? scale, int[] dense_keys, "
             "int[] dense_rows, str custom_source, bool validate_lists, int threads, str tune, str precision, "
             "int kept_bytes")
_LIBRARY = op_library.Library("spargejit", "DEF")
# Lists that there are none of (dense, or those that were given) come back empty:
# an op hands out no argument of its own.
_LIBRARY.define("attention(Tensor q, Tensor k, Tensor v, Tensor? indices, Tensor? counts, Tensor? block_mask, "
                f"Tensor? top_k_by_head, Tensor? top_p_by_head, {_SETTINGS}) -> (Tensor, Tensor, Tensor, Tensor)")
_LIBRARY.define("attention_backward(Tensor dout, Tensor? dlse, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, "
                f"Tensor? indices, Tensor? counts, {_SETTINGS}) -> (Tensor, Tensor, Tensor)")
_LIBRARY.define("select_blocks(Tensor q, Tensor k, Tensor? top_k_by_head, Tensor? top_p_by_head, "
                f"{_SETTINGS}) -> (Tensor, Tensor)")


@functools.lru_cache(maxsize=4096)
def _cached_config(values):
    return AttentionConfig(**dict(zip(_FIELDS, values)))


def _config_from(values):
    """The config of an op's last arguments."""
    return _cached_config(tuple(tuple(value) if isinstance(value, (list, tuple)) else value for value in values))


def _values_of(config, settings):
    """The other way, in words that Dynamo follows. Scalars become what the schemas
    say: True is no share, nor is 1 a float."""
    if not torch.compiler.is_compiling():
        config, settings = config_of(config, settings), {}
    for name in settings:
        if name not in _FIELDS:
            raise TypeError(f"expected settings among {', '.join(_FIELDS)}, got {name}")
    defaults = AttentionConfig.FIELDS
    get = [settings[name] if name in settings else (defaults[name] if config is None else getattr(config, name))
           for name in _FIELDS]
    method, top_k, top_p, block, causal, scale, keys, rows, source, validate, threads, tune, precision, kept = get
    return (method, float(top_k), float(top_p), list(block), bool(causal), None if scale is None else float(scale),
            list(keys), list(rows), source, bool(validate), threads, tune, precision, kept)


def _lists_from(indices, counts, config, q_len, kv_len):
    if indices is None or indices.numel() == 0 and indices.dim() == 1:
        return None
    return BlockLists(indices, counts, config.mask_block, q_len, kv_len)


def _list_shapes(q, k, config):
    block_q, block_kv = config.mask_block
    rows = (q.shape[0], q.shape[1], (q.shape[2] + block_q - 1) // block_q)
    return (*rows, (k.shape[2] + block_kv - 1) // block_kv), rows


def _makes_lists(indices, config):
    return indices is None and calls.method_has_lists(config.method)


def _attention(q, k, v, indices, counts, block_mask, top_k_by_head, top_p_by_head, *values):
    config = _config_from(values)
    given = _lists_from(indices, counts, config, q.shape[2], k.shape[2])
    forward = calls.attention_forward(q, k, v, config, lists=given, block_mask=block_mask, top_k_by_head=top_k_by_head,
                                      top_p_by_head=top_p_by_head)
    if _makes_lists(indices, config):
        return forward.o, forward.lse, forward.lists.indices, forward.lists.counts
    nothing = q.new_empty(0, dtype=torch.int32)
    return forward.o, forward.lse, nothing, nothing.clone()


def _check_devices(q, **others):
    """What no kernel sees: with one tensor of the device meta the dispatcher asks for
    shapes alone, and the others' owners would be given memory that nothing wrote."""
    for name, tensor in others.items():
        if tensor is not None and tensor.device != q.device:
            raise ValueError(f"{name}.device: expected {q.device} as q, got {tensor.device}")


def _fake_attention(q, k, v, indices, counts, block_mask, top_k_by_head, top_p_by_head, *values):
    _check_devices(q, k=k, v=v, indices=indices, counts=counts, block_mask=block_mask, top_k_by_head=top_k_by_head,
                   top_p_by_head=top_p_by_head)
    config = _config_from(values)
    shapes = _list_shapes(q, k, config) if _makes_lists(indices, config) else ((0,), (0,))
    return (q.new_empty(q.shape), q.new_empty(q.shape[:3], dtype=torch.float32),
            *(q.new_empty(shape, dtype=torch.int32) for shape in shapes))


def _readable(tensor):
    """The tensor, or a copy where the copy engine cannot read it: a last stride of 1
    and rows at multiples of 16 bytes are what it asks for."""
    size = tensor.element_size()
    good = tensor.stride(-1) == 1 and all(
        stride * size % 16 == 0 for stride, length in zip(tensor.stride()[:-1], tensor.shape) if length > 1)
    return tensor if good and tensor.data_ptr() % 16 == 0 else tensor.contiguous()


def _attention_backward(dout, dlse, q, k, v, o, lse, indices, counts, *values):
    config = _config_from(values)
    forward = calls.Forward(o, lse, _lists_from(indices, counts, config, q.shape[2], k.shape[2]))
    out = [torch.empty_like(tensor) for tensor in (q, k, v)]
    calls.attention_backward(q, k, v, forward, _readable(dout), config, out=out,
                             dlse=None if dlse is None else dlse.contiguous())
    return tuple(out)


def _fake_attention_backward(dout, dlse, q, k, v, o, lse, indices, counts, *values):
    _check_devices(q, k=k, v=v, dout=dout, o=o, lse=lse, dlse=dlse, indices=indices, counts=counts)
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


def _select_blocks(q, k, top_k_by_head, top_p_by_head, *values):
    lists = calls.select_blocks(q, k, _config_from(values), top_k_by_head=top_k_by_head, top_p_by_head=top_p_by_head)
    return lists.indices, lists.counts


def _fake_select_blocks(q, k, top_k_by_head, top_p_by_head, *values):
    _check_devices(q, k=k, top_k_by_head=top_k_by_head, top_p_by_head=top_p_by_head)
    return tuple(q.new_empty(shape, dtype=torch.int32) for shape in _list_shapes(q, k, _config_from(values)))


def _setup_context(ctx, inputs, output):
    q, k, v, indices, counts = inputs[:5]
    o, lse, made_indices, made_counts = output
    if indices is None and calls.method_has_lists(inputs[8]):
        indices, counts = made_indices, made_counts
    ctx.save_for_backward(q, k, v, o, lse, indices, counts)
    ctx.set_materialize_grads(False)
    ctx.values = inputs[8:]


def _backward(ctx, dout, dlse, _indices, _counts):
    q, k, v, o, lse, indices, counts = ctx.saved_tensors
    nothing = (None,) * (5 + len(ctx.values))
    if dout is None and dlse is None:
        return None, None, None, *nothing
    if dout is None:
        dout = torch.zeros_like(o)
    gradients = torch.ops.spargejit.attention_backward(dout, dlse, q, k, v, o, lse, indices, counts, *ctx.values)
    return *gradients, *nothing


def _no_second_derivative(ctx, *_):
    raise NotImplementedError("spargejit::attention has a first derivative only: expected no second one, got a backward "
                              "pass through its gradient (create_graph=True)")


for _name, _function, _fake in (("attention", _attention, _fake_attention),
                                ("attention_backward", _attention_backward, _fake_attention_backward),
                                ("select_blocks", _select_blocks, _fake_select_blocks)):
    for _key in ("CPU", "CUDA"):
        _LIBRARY.impl(_name, _function, _key)
    op_library.register_fake(f"spargejit::{_name}", _fake, lib=_LIBRARY)
op_library.register_autograd("spargejit::attention", _backward, setup_context=_setup_context, lib=_LIBRARY)
# Without it torch would warn, and take this part of the second derivative as 0.
op_library.register_autograd("spargejit::attention_backward", _no_second_derivative, lib=_LIBRARY)

_functorch_level = getattr(torch._C._functorch, "maybe_current_level", lambda: None)
_mode_count = torch._C._len_torch_dispatch_stack
_any_autocast = getattr(torch._C, "_is_any_autocast_enabled", lambda: True)
_TENSORS = TorchTensors(torch)


def _goes_direct(q, k, v):
    """Nothing but the values is wanted of the call, and nothing watches it."""
    if type(q) is not torch.Tensor or type(k) is not torch.Tensor or type(v) is not torch.Tensor:
        return False
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return False
    return not _mode_count() and _functorch_level() is None


def _autocast(*tensors):
    """As torch casts the arguments of scaled_dot_product_attention."""
    kind = tensors[0].device.type
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
        return tuple(tensor.to(dtype) for tensor in tensors)
    return tensors


def _refuse_tangents(*tensors):
    """A custom op drops them, and the derivative would read as 0."""
    if any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors):
        raise NotImplementedError("spargejit::attention has no forward-mode derivative: expected no tangents of q, k, "
                                  "v (torch.func.jvp, torch.autograd.forward_ad), got one")


def _refuse_gradients(precision, *tensors):
    if precision != "inputs" and torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise NotImplementedError(f"precision: expected 'inputs' with tensors that need gradients, since attention in "
                                  f"eight bits has no backward pass, got {precision!r}")


def _call(q, k, v, config, lists, block_mask, top_k_by_head, top_p_by_head, settings):
    indices, counts = (None, None) if lists is None else (lists.indices, lists.counts)
    values = _values_of(config, settings)
    _refuse_gradients(values[_FIELDS.index("precision")], q, k, v)
    return torch.ops.spargejit.attention(q, k, v, indices, counts, block_mask, top_k_by_head, top_p_by_head, *values)


def attention(q, k, v, config=None, *, lists=None, block_mask=None, top_k_by_head=None, top_p_by_head=None,
              **settings):
    """spargejit.attention() that autograd, autocast, torch.compile(fullgraph=True) and
    CUDA graphs take. q, k, v [batch, heads, length, head_dim]."""
    is_compiling = torch.compiler.is_compiling()
    if is_compiling or _any_autocast():
        q, k, v = _autocast(q, k, v)
    if not is_compiling and forward_ad._current_level >= 0:
        _refuse_tangents(q, k, v)
    if not is_compiling and _goes_direct(q, k, v):
        o = torch.empty_like(q)
        calls.attend(o, q, k, v, config_of(config, settings), None, lists, block_mask, top_k_by_head, top_p_by_head,
                     _TENSORS)
        return o
    return _call(q, k, v, config, lists, block_mask, top_k_by_head, top_p_by_head, settings)[0]


def attention_with_lse(q, k, v, config=None, *, lists=None, block_mask=None, top_k_by_head=None, top_p_by_head=None,
                       **settings):
    """(o, lse), both differentiable; lse float32 [batch, q_heads, q_len]."""
    q, k, v = _autocast(q, k, v)
    if not torch.compiler.is_compiling() and forward_ad._current_level >= 0:
        _refuse_tangents(q, k, v)
    return _call(q, k, v, config, lists, block_mask, top_k_by_head, top_p_by_head, settings)[:2]


def block_sparse_attention(q, k, v, mask, **settings):
    """attention() with blocks that the caller chose: BlockLists, or a bool tensor
    [batch, q_heads, q_blocks, kv_blocks] with the setting mask_block."""
    if isinstance(mask, BlockLists):
        settings = {"method": "block_sparse", "mask_block": mask.mask_block, **settings}
        return attention(q, k, v, lists=mask, **settings)
    return attention(q, k, v, block_mask=mask, **{"method": "block_sparse", **settings})


def select_blocks(q, k, config=None, *, top_k_by_head=None, top_p_by_head=None, **settings):
    """The BlockLists that attention() of such a config would select."""
    values = _values_of(config, settings)
    indices, counts = torch.ops.spargejit.select_blocks(q.detach(), k.detach(), top_k_by_head, top_p_by_head, *values)
    return BlockLists(indices, counts, tuple(values[_FIELDS.index("mask_block")]), q.shape[2], k.shape[2])


def prepare(q, k, v, config=None, *, backward=False, **settings):
    """Compiles and loads what such an attention() needs, and with backward=True its
    gradient, on the current stream, so that a CUDA graph can capture it."""
    calls.prepare(q, k, v, config, **settings)
    if backward:
        calls.prepare_backward(q, k, v, config, **settings)
