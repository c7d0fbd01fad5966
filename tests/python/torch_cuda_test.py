# SPDX-License-Identifier: Apache-2.0
"""spargejit.torch on a GPU: values, gradients, graphs, streams, and the host's time.
Skipped where there is no PyTorch or no GPU.
"""
import os
import statistics
import sys
import time
import unittest

try:
    import torch
except ImportError:
    print("skipped: PyTorch is not installed")
    sys.exit(77)
if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
    print("skipped: no GPU of compute capability 9.0")
    sys.exit(1 if os.environ.get("SPARGEJIT_REQUIRE_GPU") == "1" else 77)
import spargejit  # noqa: E402
import spargejit.torch as sparse  # noqa: E402
from torch import library as op_library  # noqa: E402
from torch.nn import functional as F  # noqa: E402

SEED = int(time.time())
# Random tokens are all alike to each other: a rule that keeps a few blocks.
CONFIG = spargejit.AttentionConfig(method="topk", top_k=0.1)


def setUpModule():
    print(f"seed {SEED}, {torch.cuda.get_device_name()}", flush=True)
    torch.manual_seed(SEED)


def relative_l2(value, expected):
    return float((value.double() - expected.double()).norm() / expected.double().norm())


def inputs(length=1500, heads=4, head_dim=128, dtype=torch.bfloat16, requires_grad=False):
    return [torch.randn(1, heads, length, head_dim, device="cuda", dtype=dtype).requires_grad_(requires_grad)
            for _ in range(3)]


class CudaTest(unittest.TestCase):
    def test_full_mask_is_torch_s_attention(self):
        for dtype, head_dim in ((torch.bfloat16, 128), (torch.float16, 128), (torch.bfloat16, 64)):
            q, k, v = inputs(dtype=dtype, head_dim=head_dim, requires_grad=True)
            slope = torch.randn_like(q)
            exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
            expected = F.scaled_dot_product_attention(*exact)
            right = torch.autograd.grad(expected, exact, slope.double())
            lists = sparse.select_blocks(q, k, method="topk", top_k=1.0)
            self.assertEqual(lists.density(), 1)
            for settings in ({"method": "dense"}, {"method": "topk", "top_k": 1.0},
                             {"method": "block_sparse", "lists": lists}):
                with self.subTest(dtype=dtype, head_dim=head_dim, method=settings["method"]):
                    o = sparse.attention(q, k, v, **settings)
                    errors = [relative_l2(o, expected)] + [
                        relative_l2(*pair) for pair in zip(torch.autograd.grad(o, (q, k, v), slope), right)]
                    print(f"  {dtype} {head_dim} {settings['method']}: o, dq, dk, dv off by "
                          + ", ".join(f"{error:.1e}" for error in errors), flush=True)
                    self.assertLess(max(errors), 5e-3)

    def test_masks_of_the_caller(self):
        q, k, v = inputs()
        mask = torch.rand(1, 4, 12, 24, device="cuda") < 0.3
        mask[0, 1, 2] = False  # rows that see nothing
        seen = mask.repeat_interleave(128, 2)[:, :, :1500].repeat_interleave(64, 3)[..., :1500]
        expected = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), seen).nan_to_num()
        o = sparse.block_sparse_attention(q, k, v, mask)
        self.assertLess(relative_l2(o, expected), 5e-3)
        self.assertEqual(float(o[0, 1, 256:384].abs().max()), 0)

    def test_sparse_gradients_against_float64(self):
        q, k, v = inputs(requires_grad=True)
        lists = sparse.select_blocks(q, k, CONFIG)
        seen = torch.zeros(1, 4, 12, 25, device="cuda", dtype=torch.bool)
        used = torch.arange(lists.indices.shape[3], device="cuda") < lists.counts[..., None]
        seen.scatter_(3, torch.where(used, lists.indices, 24).long(), True)
        seen = seen[..., :24].repeat_interleave(128, 2)[:, :, :1500].repeat_interleave(64, 3)[..., :1500]
        exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
        expected = F.scaled_dot_product_attention(*exact, seen)
        o, slope = sparse.attention(q, k, v, CONFIG), torch.randn_like(q)
        self.assertLess(relative_l2(o, expected), 5e-3)
        for value, right in zip(torch.autograd.grad(o, (q, k, v), slope),
                                torch.autograd.grad(expected, exact, slope.double())):
            self.assertLess(relative_l2(value, right), 5e-3)

    def test_compile(self):
        q, k, v = inputs(requires_grad=True)

        def loss(q, k, v):
            return (sparse.attention(2 * q, k, v, CONFIG).float() * v).square().mean()
        compiled = torch.compile(loss, fullgraph=True)
        torch.testing.assert_close(compiled(q, k, v), loss(q, k, v))
        for one, other in zip(torch.autograd.grad(compiled(q, k, v), (q, k, v)),
                              torch.autograd.grad(loss(q, k, v), (q, k, v))):
            self.assertLess(relative_l2(one, other), 5e-3)

    def test_gradients_that_are_one_number(self):
        # autograd hands the gradient of a sum over as a view with strides of 0.
        q, k, v = inputs(requires_grad=True)
        o, lse = sparse.attention_with_lse(q, k, v, CONFIG)
        sums = torch.autograd.grad(o.sum() + lse.sum(), (q, k, v), retain_graph=True)
        dense = torch.autograd.grad((o, lse), (q, k, v), (torch.ones_like(o), torch.ones_like(lse)))
        for one, other in zip(sums, dense):
            torch.testing.assert_close(one, other, rtol=0, atol=0)

    def test_autocast_and_ops(self):
        q, k, v = inputs(dtype=torch.float32, requires_grad=True)
        with torch.autocast("cuda", torch.bfloat16):
            o = sparse.attention(q, k, v, CONFIG)
        self.assertEqual(o.dtype, torch.bfloat16)
        self.assertEqual(torch.autograd.grad(o.float().sum(), q)[0].dtype, torch.float32)
        q, k, v = inputs(length=300, requires_grad=True)
        op_library.opcheck(torch.ops.spargejit.attention.default,
                           (q, k, v, None, None, None, None, None, *sparse.ops._values_of(CONFIG, {})))

    def test_graph_of_forward_and_backward(self):
        q, k, v = inputs(requires_grad=True)
        slope = torch.randn_like(q)

        def step():
            o = sparse.attention(q, k, v, CONFIG)
            return o, *torch.autograd.grad(o, (q, k, v), slope)
        sparse.prepare(q, k, v, CONFIG, backward=True)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            captured = step()
        with torch.no_grad():
            for x in (q, k, v):
                x.normal_()
            for x in captured:
                x.fill_(float("nan"))
        graph.replay()
        for one, other in zip(captured, step()):
            torch.testing.assert_close(one, other, rtol=0, atol=0)

    def test_two_streams(self):
        cases = [inputs(length=4000) for _ in range(2)]
        expected = [sparse.attention(*case, CONFIG) for case in cases]
        streams = [torch.cuda.Stream() for _ in cases]
        torch.cuda.synchronize()
        results = [[], []]
        for _ in range(20):
            for stream, case, result in zip(streams, cases, results):
                with torch.cuda.stream(stream):
                    result.append(sparse.attention(*case, CONFIG))
        torch.cuda.synchronize()
        for right, result in zip(expected, results):
            for o in result:
                torch.testing.assert_close(o, right, rtol=0, atol=0)

    def test_calls_take_little_of_the_host(self):
        """What Python adds: a call against the library's function alone, with
        everything packed beforehand."""
        from spargejit import calls, frame, shared_library
        q, k, v = inputs(length=256)
        o = torch.empty_like(q)
        packed = frame.Frame(q)
        addresses = [packed.tensor(name, x) for name, x in (("o", o), ("q", q), ("k", k), ("v", v))]
        addresses += [packed.config(CONFIG, q), 0]
        function = shared_library.functions().attention

        def median_of(run):
            times = []
            for _ in range(40):
                torch.cuda.synchronize()
                begin = time.perf_counter()
                for _ in range(25):
                    run()
                times.append((time.perf_counter() - begin) / 25)
            return 1e6 * statistics.median(times)
        bare = median_of(lambda: function(*addresses))
        into = median_of(lambda: calls.attention(q, k, v, CONFIG, out=o))
        whole = median_of(lambda: sparse.attention(q, k, v, CONFIG))
        print(f"  the library's function {bare:.1f} us; spargejit.attention into memory {into:.1f} us; "
              f"spargejit.torch.attention {whole:.1f} us", flush=True)
        self.assertLess(whole - bare, 12)


if __name__ == "__main__":
    unittest.main(verbosity=2)
