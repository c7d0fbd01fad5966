# SPDX-License-Identifier: Apache-2.0
"""DLPack capsules (dlpack.h, version 0: a named capsule with a DLManagedTensor) as
addresses, shapes and strides.
"""
import ctypes
from collections import namedtuple

_CPU, _CUDA, _CUDA_HOST = 1, 2, 3
# (type code, bits): name
_TYPES = {(2, 32): "float32", (2, 16): "float16", (4, 16): "bfloat16", (0, 32): "int32", (6, 8): "bool"}


class _Tensor(ctypes.Structure):
    """DLTensor."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("type_code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


View = namedtuple("View", "address dtype shape strides kind ordinal")
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def dense_strides(shape):
    """Those of a row-major tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return strides


def view_of(array):
    """What the array's capsule says. The capsule is not taken over, so that the
    array's owner frees it; the memory lives as long as the array."""
    capsule = array.__dlpack__()
    tensor = _Tensor.from_address(_get_pointer(capsule, b"dltensor"))
    dtype = _TYPES.get((tensor.type_code, tensor.bits))
    if dtype is None or tensor.lanes != 1:
        raise ValueError("expected float32, bfloat16, float16, int32 or bool, got DLPack's type "
                         f"({tensor.type_code}, {tensor.bits}, {tensor.lanes})")
    if tensor.device_type not in (_CPU, _CUDA, _CUDA_HOST):
        raise ValueError(f"expected memory of the CPU or of CUDA, got DLPack's device {tensor.device_type}")
    shape = tuple(tensor.shape[:tensor.ndim])
    strides = tuple(tensor.strides[:tensor.ndim]) if tensor.strides else dense_strides(shape)
    is_cuda = tensor.device_type == _CUDA
    return View((tensor.data or 0) + tensor.byte_offset, dtype, shape, tuple(strides), int(is_cuda),
                tensor.device_id if is_cuda else 0)
