# SPDX-License-Identifier: Apache-2.0
"""Block-sparse attention: spargejit's library for Python.

    import numpy, spargejit
    q = numpy.random.standard_normal((1, 2, 4096, 128)).astype(numpy.float32)
    o = spargejit.attention(q, q, q, top_k=0.03, top_p=0.2)

Tensors are NumPy arrays, PyTorch tensors, or anything with DLPack. PyTorch's part
(autograd, torch.compile, drop-in attention) is `spargejit.torch`, which is loaded
when it is asked for. Importing loads neither the library nor a framework.
"""
from ._errors import (ArtifactMissingError, CompileError, DriverError, InvalidArgumentError, OutOfResourcesError,
                      SpargejitError, UnsupportedError)
from .calls import (Forward, Quantised, attention, attention_backward, attention_forward, attention_quantised,
                    block_sparse_attention, distillation_loss, prepare, prepare_backward, quantise, select_blocks,
                    tuning_of, workspace_bytes)
from .config import AttentionConfig
from .shared_library import __version__, counters, info, set_log
from .lists import BlockLists

__all__ = [
    "ArtifactMissingError", "AttentionConfig", "BlockLists", "CompileError", "DriverError", "Forward",
    "InvalidArgumentError", "OutOfResourcesError", "Quantised", "SpargejitError", "UnsupportedError", "attention",
    "attention_backward", "attention_forward", "attention_quantised", "block_sparse_attention", "counters",
    "distillation_loss", "info", "prepare", "prepare_backward", "quantise", "select_blocks", "set_log", "tuning_of",
    "workspace_bytes",
]


def __getattr__(name):
    if name == "torch":
        import importlib
        return importlib.import_module("spargejit.torch")
    raise AttributeError(f"module 'spargejit' has no attribute {name!r}")
