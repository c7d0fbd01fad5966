# SPDX-License-Identifier: Apache-2.0
"""libspargejit through the C functions of BenchCalls.cpp, on PyTorch's tensors."""
import ctypes
import os


class Problem(ctypes.Structure):
    """SpargejitBenchProblem."""
    _fields_ = [("ordinal", ctypes.c_int32), ("is_bfloat16", ctypes.c_int32),
                ("batch", ctypes.c_int64), ("q_heads", ctypes.c_int64), ("kv_heads", ctypes.c_int64),
                ("q_len", ctypes.c_int64), ("kv_len", ctypes.c_int64), ("head_dim", ctypes.c_int64),
                ("q", ctypes.c_void_p), ("k", ctypes.c_void_p), ("v", ctypes.c_void_p),
                ("o", ctypes.c_void_p), ("lse", ctypes.c_void_p),
                ("q_strides", ctypes.c_int64 * 4), ("k_strides", ctypes.c_int64 * 4),
                ("v_strides", ctypes.c_int64 * 4), ("o_strides", ctypes.c_int64 * 4),
                ("mask_block_q", ctypes.c_int64), ("mask_block_kv", ctypes.c_int64),
                ("causal", ctypes.c_int32), ("indices", ctypes.c_void_p), ("counts", ctypes.c_void_p),
                ("capacity", ctypes.c_int64), ("selects", ctypes.c_int32), ("top_k", ctypes.c_double),
                ("top_p", ctypes.c_double), ("stream", ctypes.c_void_p),
                ("d_o", ctypes.c_void_p), ("d_q", ctypes.c_void_p), ("d_k", ctypes.c_void_p),
                ("d_v", ctypes.c_void_p)]


class DeviceWords:
    """int32 words on the device as PyTorch takes them; `owner` keeps them alive."""

    def __init__(self, address, shape, owner):
        self.__cuda_array_interface__ = {"data": (address, False), "shape": shape, "typestr": "<i4", "version": 3}
        self._owner = owner


class Library:
    """The loaded library; `folder` holds both shared objects."""

    def __init__(self, folder):
        ctypes.CDLL(os.path.join(folder, "libspargejit.so"), mode=ctypes.RTLD_GLOBAL)
        self._functions = ctypes.CDLL(os.path.join(folder, "libspargejit_gpu_bench.so"))
        self._functions.spargejit_bench_make.restype = ctypes.c_void_p
        self._functions.spargejit_bench_error.restype = ctypes.c_char_p
        self._functions.spargejit_bench_version.restype = ctypes.c_char_p
        self._functions.spargejit_bench_compile_milliseconds.restype = ctypes.c_double
        self._functions.spargejit_bench_select.argtypes = [ctypes.c_void_p] * 4
        for name in ("free", "prepare", "run", "prepare_backward", "run_backward"):
            getattr(self._functions, "spargejit_bench_" + name).argtypes = [ctypes.c_void_p]

    def version(self):
        return self._functions.spargejit_bench_version().decode()

    def compile_milliseconds(self):
        return self._functions.spargejit_bench_compile_milliseconds()

    def call(self, *arguments, **settings):
        return Call(self._functions, *arguments, **settings)


class Call:
    """One call, ready to be repeated. Tensors are [batch, heads, length, head_dim]."""

    def __init__(self, functions, q, k, v, o, lists=None, mask_block=(128, 64), causal=False, stream=None,
                 select=None, lse=None, gradients=None):
        """`gradients`: d_o, d_q, d_k, d_v, for a backward pass; needs `lse`."""
        import torch
        self._functions = functions
        self._tensors = (q, k, v, o, lists, lse, gradients)  # kept alive
        problem = Problem(ordinal=q.device.index, is_bfloat16=int(q.dtype == torch.bfloat16),
                          batch=q.shape[0], q_heads=q.shape[1], kv_heads=k.shape[1],
                          q_len=q.shape[2], kv_len=k.shape[2], head_dim=q.shape[3],
                          q=q.data_ptr(), k=k.data_ptr(), v=v.data_ptr(), o=o.data_ptr(),
                          mask_block_q=mask_block[0], mask_block_kv=mask_block[1], causal=int(causal),
                          stream=(stream or torch.cuda.current_stream()).cuda_stream)
        for name, tensor in (("q", q), ("k", k), ("v", v), ("o", o)):
            setattr(problem, name + "_strides", (ctypes.c_int64 * 4)(*tensor.stride()))
        if lists is not None:
            indices, counts = lists
            problem.indices, problem.counts = indices.data_ptr(), counts.data_ptr()
            problem.capacity = indices.shape[3]
        if select is not None:
            problem.selects, problem.top_k, problem.top_p = 1, *select
        if lse is not None:
            problem.lse = lse.data_ptr()
        if gradients is not None:
            for name, tensor, like in zip(("d_o", "d_q", "d_k", "d_v"), gradients, (o, q, k, v)):
                assert tensor.stride() == like.stride() and lse is not None
                setattr(problem, name, tensor.data_ptr())
        self._rows = (q.shape[0], q.shape[1], -(-q.shape[2] // mask_block[0]))
        self._handle = functions.spargejit_bench_make(ctypes.byref(problem))
        self._run = functions.spargejit_bench_run

    def prepare(self):
        self._check(self._functions.spargejit_bench_prepare(self._handle))

    def __call__(self):
        self._check(self._run(self._handle))

    def prepare_backward(self):
        self._check(self._functions.spargejit_bench_prepare_backward(self._handle))

    def backward(self):
        """Of what the last call of this object left in o and lse."""
        self._check(self._functions.spargejit_bench_run_backward(self._handle))

    def select(self):
        """The lists that the call selects: int32 indices and counts on the device."""
        import torch
        indices, counts, capacity = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int64()
        self._check(self._functions.spargejit_bench_select(
            self._handle, ctypes.byref(indices), ctypes.byref(counts), ctypes.byref(capacity)))
        return (torch.as_tensor(DeviceWords(indices.value, (*self._rows, capacity.value), self), device="cuda").clone(),
                torch.as_tensor(DeviceWords(counts.value, self._rows, self), device="cuda").clone())

    def _check(self, failed):
        if failed:
            raise RuntimeError(self._functions.spargejit_bench_error().decode())

    def __del__(self):
        if getattr(self, "_handle", None):
            self._functions.spargejit_bench_free(self._handle)
