# SPDX-License-Identifier: Apache-2.0
"""Tensors of every framework as the library sees them: packed SpargejitTensors.

A framework has `pack(array, buffer, offset)`, `empty(like, shape, dtype code)` and
`stream(array)`; frameworks are found without being imported.
"""
import struct
import sys

from . import dlpack

# SpargejitTensor of spargejit/c.h, by rank; what is beyond the rank is zero.
_BY_RANK = tuple(struct.Struct(f"@Pii{rank}q{8 * (4 - rank)}x{rank}q{8 * (4 - rank)}xii") for rank in range(5))
TENSOR_SIZE = _BY_RANK[4].size
_CALL = struct.Struct("@" + "Pii4q4qii" * 4)
FLOAT32, BFLOAT16, FLOAT16, INT32, BOOL, FLOAT8 = range(6)
CODES = {"float32": FLOAT32, "bfloat16": BFLOAT16, "float16": FLOAT16, "int32": INT32, "bool": BOOL,
         "float8_e4m3fn": FLOAT8}


def pack_view(buffer, offset, address, code, shape, strides, kind, ordinal):
    """Writes one SpargejitTensor; strides count elements."""
    rank = len(shape)
    if rank > 4:
        raise ValueError(f"expected a tensor of at most 4 dimensions, got {rank}")
    _BY_RANK[rank].pack_into(buffer, offset, address, code, rank, *shape, *strides, kind, ordinal)


class NumpyArrays:
    """NumPy's. uint16 is bfloat16 by its bits, and uint8 float8_e4m3fn where 8-bit
    tensors are expected; those of ml_dtypes are known too."""

    @classmethod
    def pack_eight_bits(cls, array, buffer, offset):
        cls.pack(array, buffer, offset, FLOAT8 if array.dtype.name == "uint8" else None)

    @staticmethod
    def pack(array, buffer, offset, code=None):
        name = array.dtype.name
        if code is None:
            code = BFLOAT16 if name == "uint16" else CODES.get(name)
        if code is None:
            raise ValueError(f"expected float32, float16, bfloat16 (ml_dtypes, or its bits in uint16), int32 or bool, "
                             f"got an array of {name}")
        if not array.dtype.isnative:
            raise ValueError(f"expected this machine's byte order, got {array.dtype.str}; array.astype({name!r}) has it")
        size = array.itemsize
        if any(stride % size for stride in array.strides):
            raise ValueError(f"expected strides of whole elements ({size} bytes), got {array.strides}")
        if not array.flags.aligned:
            raise ValueError("expected an array aligned for its type")
        # NumPy's own strides of an array without elements are 0, or anything.
        strides = [stride // size for stride in array.strides] if array.size else dlpack.dense_strides(array.shape)
        pack_view(buffer, offset, array.ctypes.data, code, array.shape, strides, 0, 0)

    @staticmethod
    def check_writable(array):
        if not array.flags.writeable:
            raise ValueError("expected memory that may be written, got a read-only array")

    @staticmethod
    def empty(like, shape, code=None):
        numpy = sys.modules["numpy"]
        names = ("float32", "uint16", "float16", "int32", "bool", "uint8")
        return numpy.empty(shape, like.dtype if code is None else names[code])

    @staticmethod
    def stream(_):
        return 0


class TorchTensors:
    """PyTorch's, by data_ptr(); streams are the current ones."""

    def __init__(self, torch):
        self._torch = torch
        self._codes = {torch.float32: FLOAT32, torch.bfloat16: BFLOAT16, torch.float16: FLOAT16, torch.int32: INT32,
                       torch.bool: BOOL}
        self._types = [torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.bool]
        if hasattr(torch, "float8_e4m3fn"):
            self._codes[torch.float8_e4m3fn] = FLOAT8
            self._types.append(torch.float8_e4m3fn)
        # The raw handle is a fifth of the time of current_stream().cuda_stream.
        self._raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)

    def pack(self, tensor, buffer, offset):
        code, shape = self._codes.get(tensor.dtype), tensor.shape
        if tensor.is_cuda:
            kind, ordinal = 1, tensor.get_device()
        elif tensor.is_cpu:
            kind = ordinal = 0
        else:
            raise ValueError(f"expected a tensor of the CPU or a CUDA device, got one of {tensor.device}")
        rank = len(shape)
        if code is None:
            raise ValueError(f"expected float32, bfloat16, float16, int32 or bool, got a tensor of {tensor.dtype}")
        if rank > 4:
            raise ValueError(f"expected a tensor of at most 4 dimensions, got {rank}")
        # As pack_view() does: a call of a function less, four times a call.
        _BY_RANK[rank].pack_into(buffer, offset, tensor.data_ptr(), code, rank, *shape, *tensor.stride(), kind, ordinal)

    def pack_call(self, buffer, o, q, k, v):
        """Writes four tensors in a row, at a third of the time of four pack(); False,
        and nothing, where one is not of rank 4, of the CPU or CUDA, and of a type that
        there is."""
        codes, fields = self._codes, []
        try:
            for tensor in (o, q, k, v):
                ordinal = tensor.get_device()
                fields += (tensor.data_ptr(), codes[tensor.dtype], 4, *tensor.shape, *tensor.stride(),
                           *((1, ordinal) if tensor.is_cuda else (0, 0)))
            _CALL.pack_into(buffer, 0, *fields)
        except (AttributeError, KeyError, RuntimeError, struct.error):
            return False
        return q.is_cuda or q.is_cpu

    def empty(self, like, shape, code=None):
        return like.new_empty(shape) if code is None else like.new_empty(shape, dtype=self._types[code])

    def stream(self, tensor):
        if not tensor.is_cuda:
            return 0
        if self._raw_stream:
            return self._raw_stream(tensor.get_device())
        return self._torch.cuda.current_stream(tensor.device).cuda_stream


class ForeignArrays:
    """Whatever has DLPack. It hands nothing out: results go to `out`."""

    @staticmethod
    def pack(array, buffer, offset):
        view = dlpack.view_of(array)
        pack_view(buffer, offset, view.address, CODES[view.dtype], view.shape, view.strides, view.kind, view.ordinal)

    @staticmethod
    def empty(like, shape, code=None):
        raise TypeError(f"expected memory for each result (out=...), since {type(like).__module__}."
                        f"{type(like).__name__} is neither of NumPy nor of PyTorch")

    @staticmethod
    def stream(_):
        return 0


_torch_tensors = None


def framework_of(array, name="q"):
    """Whose array it is; `name` is what the caller knows it by."""
    global _torch_tensors
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, getattr(torch, "Tensor", ())):
        if _torch_tensors is None:
            _torch_tensors = TorchTensors(torch)
        return _torch_tensors
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(array, numpy.ndarray):
        return NumpyArrays
    if hasattr(array, "__dlpack__"):
        return ForeignArrays
    raise TypeError(f"{name}: expected an array of NumPy, a tensor of PyTorch or an object with DLPack, got "
                    f"{type(array).__name__}")
