# SPDX-License-Identifier: Apache-2.0
"""spargejit for PyTorch: ops with autograd that torch.compile and CUDA graphs take,
and attention of whole models replaced.
"""
import torch
from torch import library as op_library

if not hasattr(op_library, "register_autograd"):
    raise ImportError(f"spargejit.torch: expected PyTorch 2.6 or later, got {torch.__version__}")

from .ops import (attention, attention_with_lse, block_sparse_attention, prepare, select_blocks)  # noqa: E402
from .replace import Replacement, replace_attention  # noqa: E402
from .sdpa import scaled_dot_product_attention  # noqa: E402

__all__ = ["Replacement", "attention", "attention_with_lse", "block_sparse_attention", "prepare", "replace_attention",
           "scaled_dot_product_attention", "select_blocks"]
