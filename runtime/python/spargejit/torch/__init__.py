# SPDX-License-Identifier: Apache-2.0
"""spargejit for PyTorch: ops with autograd that torch.compile and CUDA graphs take,
and attention of whole models replaced.
"""
from .ops import (attention, attention_with_lse, block_sparse_attention, prepare, select_blocks)
from .replace import Replacement, replace_attention
from .sdpa import scaled_dot_product_attention

__all__ = ["Replacement", "attention", "attention_with_lse", "block_sparse_attention", "prepare", "replace_attention",
           "scaled_dot_product_attention", "select_blocks"]
