# SPDX-License-Identifier: Apache-2.0
"""Forward and backward passes from a pack, by the library without the compiler.

    SPARGEJIT_LIBRARY=libspargejit.so SPARGEJIT_PACK=pack python3 check_pack.py

compares both with PyTorch in float32 and says how long it takes from CUDA being up
to the first call's being ready. Status 1 when something is wrong, or anything was
compiled.
"""
import sys
import time

import torch

import spargejit

# As the issues of the kernels promise: o, and gradients.
LARGEST_ERROR = {"o": 3e-3, "dq": 1e-2, "dk": 1e-2, "dv": 1e-2}
READY_MS = 5.0


def relative_l2(found, expected):
    return float((found.float() - expected).norm() / expected.norm())


def check(q, k, v, dout):
    """Relative L2 errors of o and of the gradients."""
    lists = spargejit.select_blocks(q, k, top_k=0.2, top_p=0.0)
    forward = spargejit.attention_forward(q, k, v, method="block_sparse", lists=lists)
    gradients = spargejit.attention_backward(q, k, v, forward, dout, method="block_sparse")
    indices = lists.indices.long().clamp(min=0)
    live = torch.arange(indices.shape[3], device=q.device) < lists.counts.unsqueeze(-1)
    counted = torch.zeros(*indices.shape[:3], lists.kv_blocks, dtype=torch.int64, device=q.device)
    blocks = counted.scatter_add_(3, indices, live.long()) > 0
    full = blocks.repeat_interleave(128, 2)[:, :, :q.shape[2]].repeat_interleave(64, 3)[..., :k.shape[2]]
    wide = [x.float().requires_grad_() for x in (q, k, v)]
    o = torch.nn.functional.scaled_dot_product_attention(*wide, attn_mask=full)
    o.backward(dout.float())
    found = {"o": forward.o, **dict(zip(("dq", "dk", "dv"), gradients))}
    expected = {"o": o.detach(), **{name: x.grad for name, x in zip(("dq", "dk", "dv"), wide)}}
    return {name: relative_l2(found[name], expected[name]) for name in found}


def main():
    torch.manual_seed(time.time_ns() % 2**31)
    q, k, v, dout = (torch.randn(1, 3, 3000, 128, device="cuda", dtype=torch.bfloat16) for _ in range(4))
    torch.cuda.synchronize()
    spargejit.info()  # the library is loaded
    began = time.perf_counter()
    spargejit.prepare(q, k, v, method="spargeattention2")
    ready = 1e3 * (time.perf_counter() - began)
    print(f"ready after {ready:.2f} ms")
    errors = check(q, k, v, dout)
    torch.cuda.synchronize()
    counters = spargejit.counters()
    print("relative L2:", ", ".join(f"{name} {error:.2e}" for name, error in errors.items()), counters)
    wrong = [name for name, error in errors.items() if not error < LARGEST_ERROR[name]]
    if wrong or ready > READY_MS or counters["kernels_compiled"]:
        sys.exit(f"error: {wrong}, ready after {ready:.2f} ms, {counters}")


if __name__ == "__main__":
    main()
