# SPDX-License-Identifier: Apache-2.0
"""The shared library: where it is, its functions, and what it says of itself.
It is loaded at the first use.
"""
import ctypes
import os
import struct

from ._errors import SpargejitError, error_of

__version__ = "0.1.0"
ABI_VERSION = 1  # SPARGEJIT_ABI_VERSION of spargejit/c.h

_POINTER, _INT64_POINTER = ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64)
# name: argument types; each returns a status.
_CALLS = {
    "attention": [_POINTER] * 6,
    "select_blocks": [_POINTER] * 4,
    "quantise": [_POINTER] * 5,
    "attention_quantised": [_POINTER] * 4,
    "attention_backward": [_POINTER] * 8,
    "prepare": [_POINTER] * 5,
    "prepare_backward": [_POINTER] * 4,
    "workspace_bytes": [_POINTER] * 4 + [_INT64_POINTER],
    "backward_workspace_bytes": [_POINTER] * 4 + [_INT64_POINTER],
    "tuning_of": [_POINTER] * 5,
    "distillation_loss": [_POINTER] * 4 + [ctypes.c_double, _POINTER],
    "method_has_lists": [ctypes.c_char_p, ctypes.POINTER(ctypes.c_int32)],
    "get_counters": [_POINTER],
    "synchronise": [ctypes.c_int32] * 2,
}
_TEXTS = ("version", "last_error", "describe")
_LOG_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p)
_LOG_LEVELS = ("debug", "info", "warning")

_loaded = None
_log_callback = None


def library_path():
    """SPARGEJIT_LIBRARY, or the library beside this file."""
    return os.environ.get("SPARGEJIT_LIBRARY") or os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "libspargejit.so")


class Functions:
    """The functions of spargejit/c.h without their prefix."""

    def __init__(self, path):
        try:
            self._library = ctypes.CDLL(path)
        except OSError as error:
            raise ImportError(f"spargejit's library could not be loaded: {error}; it comes with the wheel, or is "
                              "what the environment variable SPARGEJIT_LIBRARY names") from error
        for name in _TEXTS:
            self._add(name, [], ctypes.c_char_p)
        self._add("abi_version", [], ctypes.c_int32)
        if self.abi_version() != ABI_VERSION:
            raise ImportError(f"{path}: expected version {ABI_VERSION} of the binary interface, got "
                              f"{self.abi_version()}")
        for name, arguments in _CALLS.items():
            self._add(name, arguments, ctypes.c_int32)
        self._add("has_compiler", [], ctypes.c_int32)
        self._add("set_log_callback", [_LOG_CALLBACK, ctypes.c_void_p], None)

    def _add(self, name, arguments, result):
        try:
            function = getattr(self._library, "spargejit_" + name)
        except AttributeError as error:
            raise ImportError(f"{self._library._name}: expected spargejit's library, which has spargejit_{name}, got "
                              "one without") from error
        function.argtypes, function.restype = arguments, result
        setattr(self, name, function)

    def check(self, status):
        """Raises what a status that is not 0 means."""
        if status:
            raise error_of(status, self.last_error().decode(errors="replace"))


def functions():
    """The library's functions; loads it at the first call."""
    global _loaded
    if _loaded is None:
        _loaded = Functions(library_path())
    return _loaded


def info():
    """What the library is and finds, as a dict: version, compiler, methods, CUDA
    driver, cache folder, settings, and where it was loaded from."""
    import json  # a third of the package's import time
    text = functions().describe().decode(errors="replace")
    if not text:
        raise SpargejitError("the library could not describe itself")
    return {**json.loads(text), "library": library_path()}


def counters():
    """What this process has done so far, as a dict (library.h: Counters)."""
    layout = struct.Struct("@Nqqqqqd")
    buffer = ctypes.create_string_buffer(layout.pack(layout.size, *[0] * 5, 0.0), layout.size)
    functions().check(functions().get_counters(ctypes.addressof(buffer)))
    names = ("kernels_compiled", "kernel_cache_hits", "kernels_from_disk", "plans_made", "bytes_allocated",
             "compile_milliseconds")
    return dict(zip(names, layout.unpack(buffer.raw)[1:]))


def set_log(callback):
    """Calls callback(level, line) for each line that the library logs, with level
    'debug', 'info' or 'warning', from whatever thread does the work; None stops it."""
    global _log_callback
    if callback is None:
        functions().set_log_callback(_LOG_CALLBACK(), None)
        _log_callback = None
        return

    if not callable(callback):
        raise TypeError(f"callback: expected a function (level, line) or None, got {type(callback).__name__}")

    def receive(_, level, line):
        callback(_LOG_LEVELS[level], line.decode(errors="replace"))
    function = _LOG_CALLBACK(receive)
    functions().set_log_callback(function, None)
    _log_callback = function  # the library keeps it
