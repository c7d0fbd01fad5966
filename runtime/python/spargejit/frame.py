# SPDX-License-Identifier: Apache-2.0
"""The structs of one call, packed into one piece of memory: cheaper than a ctypes
object for each, and no call shares any with another.
"""
import ctypes
import struct

from .arrays import TENSOR_SIZE, framework_of
from .config import CONFIG_SIZE
from .lists import BlockLists

_SLOTS = ("o", "q", "k", "v", "lse", "dout", "dlse", "dq", "dk", "dv", "top_k_by_head", "top_p_by_head", "block_mask",
          "q8", "k8", "v8", "v_scales", "q_factors", "k_factors")
_EIGHT_BITS = frozenset(("q8", "k8", "v8"))
# What messages call them.
_QUANTISED_NAMES = ("q", "k", "v", "v_scales", "q_factors", "k_factors")
_RESULTS = frozenset(("o", "lse", "dq", "dk", "dv"))
_OFFSETS = {name: i * TENSOR_SIZE for i, name in enumerate(_SLOTS)}
# SpargejitLists: two tensors and four numbers.
_LISTS_SIZE = 2 * TENSOR_SIZE + 32
_LISTS = {"lists": len(_SLOTS) * TENSOR_SIZE, "given_lists": len(_SLOTS) * TENSOR_SIZE + _LISTS_SIZE}
_LIST_NUMBERS = struct.Struct("@4q")
# SpargejitOutputs; SpargejitSaved and SpargejitGradients are alike.
_TWO, _THREE = struct.Struct("@NPP"), struct.Struct("@NPPP")
# SpargejitQuantised.
_QUANTISED_LAYOUT = struct.Struct("@NPPPPPPqii")
_OUTPUTS = len(_SLOTS) * TENSOR_SIZE + 2 * _LISTS_SIZE
_SAVED = _OUTPUTS + _TWO.size
_GRADIENTS = _SAVED + _THREE.size
_CONFIG = _GRADIENTS + _THREE.size
_QUANTISED = _CONFIG + CONFIG_SIZE
_Buffer = ctypes.c_char * (_QUANTISED + _QUANTISED_LAYOUT.size)


class Frame:
    """Memory for the structs of one call, and for the texts that they point to. Each
    method gives an address, which holds as long as the frame lives."""
    __slots__ = ("framework", "_buffer", "_base", "_config", "_first")

    def __init__(self, q, framework=None, name="q"):
        self.framework = framework or framework_of(q, name)
        self._first = name
        self._buffer = _Buffer()
        self._base = ctypes.addressof(self._buffer)

    def tensor(self, name, array, is_read=False, is_written=False, label=None):
        """0 for None. Results are checked to be writable, but for those that are read
        (o and lse of a forward pass). `label`: what messages call it."""
        if array is None:
            return 0
        self._pack(label or name, array, _OFFSETS[name], is_written or name in _RESULTS and not is_read,
                   name in _EIGHT_BITS)
        return self._base + _OFFSETS[name]

    def _pack(self, label, array, offset, is_written=False, is_eight_bits=False):
        try:
            pack = getattr(self.framework, "pack_eight_bits", None) if is_eight_bits else None
            (pack or self.framework.pack)(array, self._buffer, offset)
            if is_written:
                check_writable = getattr(self.framework, "check_writable", None)
                if check_writable is not None:
                    check_writable(array)
        except AttributeError:
            raise TypeError(f"{label}: expected a tensor of the same framework as {self._first}, got "
                            f"{type(array).__name__}") from None
        except ValueError as error:
            raise ValueError(f"{label}: {error}") from None

    def call(self, o, q, k, v):
        """tensor() of the four."""
        pack_call = getattr(self.framework, "pack_call", None)
        if pack_call is None or not pack_call(self._buffer, o, q, k, v):
            # In this order, so that messages speak of q first.
            inputs = self.tensor("q", q), self.tensor("k", k), self.tensor("v", v)
            return (self.tensor("o", o), *inputs)
        base = self._base
        return base, base + _OFFSETS["q"], base + _OFFSETS["k"], base + _OFFSETS["v"]

    def lists(self, name, lists, is_written=False):
        if lists is None:
            return 0
        if not isinstance(lists, BlockLists):
            raise TypeError(f"lists: expected BlockLists, got {type(lists).__name__}")
        offset = _LISTS[name]
        for field, place in (("indices", offset), ("counts", offset + TENSOR_SIZE)):
            self._pack(f"lists.{field}", getattr(lists, field), place, is_written)
        try:
            block_q, block_kv = lists.mask_block
            _LIST_NUMBERS.pack_into(self._buffer, offset + 2 * TENSOR_SIZE, block_q, block_kv, lists.q_len,
                                    lists.kv_len)
        except (TypeError, ValueError, struct.error):
            raise ValueError("lists: expected two integers in mask_block, one in q_len and one in kv_len, got "
                             f"{lists.mask_block}, {lists.q_len} and {lists.kv_len}") from None
        return self._base + offset

    def outputs(self, lse, lists):
        """0 where there are none."""
        if not (lse or lists):
            return 0
        _TWO.pack_into(self._buffer, _OUTPUTS, _TWO.size, lse, lists)
        return self._base + _OUTPUTS

    def saved(self, o, lse, lists):
        _THREE.pack_into(self._buffer, _SAVED, _THREE.size, o, lse, lists)
        return self._base + _SAVED

    def gradients(self, dq, dk, dv):
        _THREE.pack_into(self._buffer, _GRADIENTS, _THREE.size, dq, dk, dv)
        return self._base + _GRADIENTS

    def quantised(self, argument, tensors, code, is_written=False):
        """`argument`: what messages call it; `code`: the type of what was rounded."""
        addresses = [self.tensor(slot, array, is_written=is_written, label=f"{argument}.{name}")
                     for slot, name, array in zip(_SLOTS[-6:], _QUANTISED_NAMES, tensors)]
        shape = getattr(tensors[1], "shape", ())  # the library names what is wrong with it
        _QUANTISED_LAYOUT.pack_into(self._buffer, _QUANTISED, _QUANTISED_LAYOUT.size, *addresses,
                                    shape[2] if len(shape) == 4 else 0, code, 0)
        return self._base + _QUANTISED

    def config(self, config, q, stream=None, lists=None, block_mask=None, top_k_by_head=None, top_p_by_head=None):
        self._config = config  # whose texts the struct points to
        if stream is None:
            stream = self.framework.stream(q)
        elif not hasattr(stream, "__index__"):
            raise TypeError(f"stream: expected a raw CUDA stream, which is an integer, got {stream!r}")
        if lists is None and block_mask is None and top_k_by_head is None and top_p_by_head is None:
            config.pack_into(self._buffer, _CONFIG, stream)
        else:
            by_head = self.tensor("top_k_by_head", top_k_by_head), self.tensor("top_p_by_head", top_p_by_head)
            config.pack_into(self._buffer, _CONFIG, stream, by_head, self.tensor("block_mask", block_mask),
                             self.lists("given_lists", lists))
        return self._base + _CONFIG
