# SPDX-License-Identifier: Apache-2.0
"""spargejit.torch on the CPU: values and gradients, tracing, and models whose
attention is replaced. Skipped where PyTorch is not installed.
"""
import copy
import os
import sys
import tempfile
import unittest

try:
    import torch
except ImportError:
    print("skipped: PyTorch is not installed")
    sys.exit(77)
import reference  # noqa: E402
import spargejit  # noqa: E402
import spargejit.torch as sparse  # noqa: E402
from torch import library as op_library, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

CONFIG = spargejit.AttentionConfig(top_k=0.3, mask_block=(64, 32))


def setUpModule():
    torch.manual_seed(int(reference.generator().integers(2 ** 31)))


def relative_l2(value, expected):
    return float((value.double() - expected.double()).norm() / expected.double().norm())


def draw(*shape, dtype=torch.float32, requires_grad=False):
    return torch.randn(shape, dtype=dtype).requires_grad_(requires_grad)


def inputs(length=300, heads=2, kv_heads=None, head_dim=64, **options):
    return [draw(1, count, length, head_dim, **options) for count in (heads, kv_heads or heads, kv_heads or heads)]


def dense(q, k, v, seen=None):
    return F.scaled_dot_product_attention(q, k, v, seen, enable_gqa=q.shape[1] != k.shape[1])


def seen_by(lists):
    mask = torch.from_numpy(reference.mask_of(lists))
    rows, keys = torch.arange(lists.q_len) // lists.mask_block[0], torch.arange(lists.kv_len) // lists.mask_block[1]
    return mask[:, :, rows][:, :, :, keys]


class OpsTest(unittest.TestCase):
    def test_dense_method_is_torch_s_attention(self):
        # Sums are float32 in both; bfloat16 rounds results and weights.
        for dtype, bound in ((torch.float32, 5e-6), (torch.float16, 2e-3), (torch.bfloat16, 1e-2)):
            for kv_heads in (4, 2):
                q, k, v = inputs(heads=4, kv_heads=kv_heads, dtype=dtype)
                o = sparse.attention(q, k, v, method="dense")
                self.assertEqual((o.dtype, o.shape), (dtype, q.shape))
                self.assertLess(relative_l2(o, dense(q.double(), k.double(), v.double())), bound)

    def test_layout_of_q_is_kept(self):
        q, k, v = draw(1, 300, 3, 2, 64).permute(2, 0, 3, 1, 4)
        o = sparse.attention(q, k, v, method="dense")
        self.assertTrue(o.transpose(1, 2).is_contiguous())  # no copy in front of flatten(2)
        self.assertLess(relative_l2(o, dense(q, k, v)), 5e-6)

    def test_gradients_against_float64(self):
        for settings in ({"method": "dense"}, {"config": CONFIG}):
            q, k, v = inputs(heads=4, kv_heads=2, requires_grad=True)
            o = sparse.attention(q, k, v, **settings)
            slope = torch.randn_like(o)
            seen = None
            if "config" in settings:
                seen = seen_by(sparse.select_blocks(q, k, CONFIG))
            exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
            expected = dense(*exact, seen)
            self.assertLess(relative_l2(o, expected), 5e-6)
            for value, right in zip(torch.autograd.grad(o, (q, k, v), slope),
                                    torch.autograd.grad(expected, exact, slope.double())):
                self.assertLess(relative_l2(value, right), 1e-5)

    def test_gradients_of_sums_and_of_lse(self):
        q, k, v = inputs(requires_grad=True)
        o, lse = sparse.attention_with_lse(q, k, v, method="dense")
        exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
        scores = exact[0] @ exact[1].mT / 8
        for loss, right in ((o.sum(), (scores.softmax(-1) @ exact[2]).sum()), (lse.sum(), scores.logsumexp(-1).sum())):
            value = torch.autograd.grad(loss, (q, k), retain_graph=True)
            for one, other in zip(value, torch.autograd.grad(right, exact[:2], retain_graph=True)):
                # The gradient of a mere sum of o is what is left of large sums.
                self.assertLess((one - other).norm() / (1e-3 * q.numel() ** 0.5 + other.norm()), 1e-3)

    def test_general_function_takes_gradients_too(self):
        q, k, v = inputs(requires_grad=True)
        o = spargejit.attention(q, k, v, CONFIG)
        self.assertTrue(o.requires_grad)
        torch.testing.assert_close(o, sparse.attention(q, k, v, CONFIG), rtol=0, atol=0)

    def test_direct_calls_and_ops_give_the_same_bits(self):
        q, k, v = inputs()
        direct = sparse.attention(q, k, v, CONFIG)
        by_op = sparse.attention(q.clone().requires_grad_(), k, v, CONFIG)
        torch.testing.assert_close(direct, by_op.detach(), rtol=0, atol=0)

    def test_block_sparse_attention(self):
        q, k, v = inputs(requires_grad=True)
        lists = sparse.select_blocks(q, k, CONFIG)
        mask = torch.from_numpy(reference.mask_of(lists))
        wanted = sparse.attention(q, k, v, CONFIG)
        for blocks, settings in ((lists, {}), (mask, {"mask_block": (64, 32)})):
            o = sparse.block_sparse_attention(q, k, v, blocks, **settings)
            torch.testing.assert_close(o, wanted, rtol=0, atol=0)
            for one, other in zip(torch.autograd.grad(o.square().sum(), (q, k, v)),
                                  torch.autograd.grad(wanted.square().sum(), (q, k, v), retain_graph=True)):
                torch.testing.assert_close(one, other, rtol=0, atol=0)

    def test_compile_in_one_graph(self):
        q, k, v = inputs(requires_grad=True)

        def loss(q, k, v):
            return (sparse.attention(2 * q, k, v, CONFIG, causal=True) * v).square().sum()
        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
        for one, other in zip(torch.autograd.grad(compiled(q, k, v), (q, k, v)),
                              torch.autograd.grad(loss(q, k, v), (q, k, v))):
            torch.testing.assert_close(one, other)
        with torch.no_grad():
            torch.testing.assert_close(compiled(q, k, v), loss(q, k, v))
        longer = inputs(length=350)  # another length: the compiled function holds
        torch.testing.assert_close(compiled(*longer), loss(*longer))

    def test_autocast(self):
        q, k, v = inputs(requires_grad=True)
        with torch.autocast("cpu", torch.bfloat16):
            o = sparse.attention(q, k, v, method="dense")
            self.assertEqual(o.dtype, torch.bfloat16)
        dq, = torch.autograd.grad(o.float().square().sum(), q)
        self.assertEqual(dq.dtype, torch.float32)

    def test_ops_are_well_formed(self):
        q, k, v = inputs(length=150, requires_grad=True)
        values = sparse.ops._values_of(CONFIG, {})
        check, ops = op_library.opcheck, torch.ops.spargejit
        check(ops.attention.default, (q, k, v, None, None, None, None, None, *values))
        dense_values = sparse.ops._values_of(None, {"method": "dense"})
        check(ops.attention.default, (q, k, v, None, None, None, None, None, *dense_values))
        check(ops.select_blocks.default, (q.detach(), k.detach(), None, None, *values))
        with torch.no_grad():
            o, lse, indices, counts = ops.attention(q, k, v, None, None, None, None, None, *values)
            check(ops.attention_backward.default,
                  (torch.randn_like(o), None, q.detach(), k.detach(), v.detach(), o, lse, indices, counts, *values))

    def test_modes_see_the_op(self):
        from torch._subclasses.fake_tensor import FakeTensorMode
        with FakeTensorMode():
            o = sparse.attention(*inputs(), CONFIG)
        self.assertEqual((type(o).__name__, o.shape), ("FakeTensor", (1, 2, 300, 64)))

    def test_derivatives_that_there_are_not_are_refused(self):
        q, k, v = inputs(requires_grad=True)
        slope, = torch.autograd.grad(sparse.attention(q, k, v, CONFIG).square().sum() + q.pow(3).sum(), q,
                                     create_graph=True)
        with self.assertRaisesRegex(NotImplementedError, "second"):
            slope.square().sum().backward()
        values = [x.detach() for x in (q, k, v)]
        for function in (sparse.attention, sparse.attention_with_lse):
            with self.assertRaisesRegex(NotImplementedError, "forward-mode"):
                torch.func.jvp(lambda x: function(x, *values[1:], CONFIG)[0], (values[0],), (values[1],))
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(values[0], values[1])
            with self.assertRaisesRegex(NotImplementedError, "forward-mode"):
                sparse.attention(dual, *values[1:], CONFIG)
            sparse.attention(*values, CONFIG)  # nothing is asked of this one

    def test_devices_that_differ_are_refused(self):
        # The dispatcher would ask the fake kernel, and hand out memory that nobody wrote.
        q, k, v = inputs()
        on_meta = k.to("meta")
        for leaf in (q, q.clone().requires_grad_()):
            for arguments in ((leaf, on_meta, v), (leaf, k, on_meta), (on_meta, leaf, v)):
                with self.assertRaises(ValueError):
                    sparse.attention(*arguments, CONFIG)
        with self.assertRaisesRegex(ValueError, "k.device"):
            sparse.select_blocks(q, on_meta, CONFIG)
        lists = sparse.select_blocks(q, k, CONFIG)
        with self.assertRaisesRegex(ValueError, "counts.device"):
            sparse.block_sparse_attention(q.requires_grad_(), k, v, lists._replace(counts=lists.counts.to("meta")))
        self.assertEqual(sparse.attention(*[x.to("meta").requires_grad_() for x in (q, k, v)], CONFIG).shape, q.shape)

    def test_refusals_carry_the_library_s_message(self):
        q, k, v = inputs(requires_grad=True)
        with self.assertRaisesRegex(ValueError, "config.topK"):
            sparse.attention(q, k, v, top_k=3)
        with self.assertRaisesRegex(ValueError, r"k.sizes\[3\]"):
            sparse.attention(q.detach(), k.detach()[..., :32], v.detach())
        with self.assertRaisesRegex(TypeError, "top_q"):
            sparse.attention(q, k, v, top_q=3)


class SdpaTest(unittest.TestCase):
    def test_is_torch_s_with_all_blocks(self):
        q, k, v = inputs()
        for options in ({}, {"is_causal": True}, {"scale": 0.3}):
            o = sparse.scaled_dot_product_attention(q, k, v, **options, method="dense")
            self.assertLess(relative_l2(o, F.scaled_dot_product_attention(q, k, v, **options)), 5e-6)
        o = sparse.scaled_dot_product_attention(q[0], k[0], v[0], method="dense")
        self.assertLess(relative_l2(o, F.scaled_dot_product_attention(q[0], k[0], v[0])), 5e-6)

    def test_refuses_what_it_does_not_do(self):
        q, k, v = inputs(heads=4)
        mask = torch.ones(300, 300, dtype=torch.bool)
        for arguments, options in (((q, k, v, mask), {}), ((q, k, v), {"dropout_p": 0.1}),
                                   ((q, k[:, :, :200], v[:, :, :200]), {"is_causal": True}),
                                   ((q, k[:, :2], v[:, :2]), {}), ((q, k, v[..., :32]), {}),
                                   ((q[None], k[None], v[None]), {})):
            with self.assertRaises(NotImplementedError):
                sparse.scaled_dot_product_attention(*arguments, **options)


class SelfAttention(nn.Module):
    def __init__(self, width=64, heads=2):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x, mask=None):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2))


class CrossAttention(SelfAttention):
    def forward(self, x, text):
        q = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)[0]
        _, k, v = self.qkv(text).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self, checkpoint=False):
        super().__init__()
        self.blocks = nn.ModuleList(nn.ModuleDict({"self": SelfAttention(), "cross": CrossAttention()})
                                    for _ in range(2))
        self.checkpoint = checkpoint

    def forward(self, x, text):
        for block in self.blocks:
            if self.checkpoint:
                x = x + torch.utils.checkpoint.checkpoint(block["self"], x, use_reentrant=False)
            else:
                x = x + block["self"](x)
            x = x + block["cross"](x, text)
        return x


class ReplaceTest(unittest.TestCase):
    def setUp(self):
        self.model, self.x, self.text = Model(), draw(1, 400, 64), draw(1, 20, 64)

    def run_model(self):
        with torch.no_grad():
            return self.model(self.x, self.text)

    def test_all_blocks_is_the_model_itself_and_few_are_not(self):
        plain = self.run_model()
        with sparse.replace_attention(self.model, method_all(), min_length=200):
            self.assertLess(relative_l2(self.run_model(), plain), 1e-5)
        with sparse.replace_attention(self.model, CONFIG, min_length=200):
            self.assertGreater(relative_l2(self.run_model(), plain), 1e-4)
        torch.testing.assert_close(self.run_model(), plain, rtol=0, atol=0)  # removed
        with sparse.replace_attention(self.model, CONFIG, min_length=401):
            torch.testing.assert_close(self.run_model(), plain, rtol=0, atol=0)

    def test_settings_by_layer(self):
        plain = self.run_model()
        with sparse.replace_attention(self.model, {"blocks.1.*": CONFIG}, min_length=200) as handle:
            self.assertEqual([layer.name for layer in handle.layers if layer.config is not None],
                             ["blocks.1.self", "blocks.1.cross"])
            by_name = self.run_model()
        with sparse.replace_attention(self.model, lambda name, index: CONFIG if index >= 2 else None, min_length=200):
            torch.testing.assert_close(self.run_model(), by_name, rtol=0, atol=0)
        self.assertGreater(relative_l2(by_name, plain), 1e-4)

    def test_configs_that_fit_no_layer_are_refused(self):
        for config, error in (([CONFIG], ValueError), ([CONFIG] * 5, ValueError), ("topk", TypeError),
                              ({"*": 0.1}, TypeError), ({"block.*": None, "*": CONFIG}, ValueError),
                              ({}, ValueError)):
            with self.assertRaisesRegex(error, "config: expected"):
                sparse.replace_attention(self.model, config)
        self.assertNotIn("forward", vars(self.model.blocks[0]["self"]))

    def test_of_several_the_last_counts(self):
        few = CONFIG.replaced(top_k=0.01, top_p=0.0)
        plain, results = self.run_model(), []
        for config in (CONFIG, few):
            with sparse.replace_attention(self.model, config, min_length=200):
                results.append(self.run_model())
        self.assertGreater(relative_l2(results[1], results[0]), 1e-4)
        for order in ((0, 1), (1, 0)):
            handles = [sparse.replace_attention(self.model, config, min_length=200) for config in (CONFIG, few)]
            torch.testing.assert_close(self.run_model(), results[1], rtol=0, atol=0)
            handles[order[0]].remove()
            torch.testing.assert_close(self.run_model(), results[order[1]], rtol=0, atol=0)
            handles[order[1]].remove()
            with sparse.replace_attention(Model(), CONFIG, min_length=200):  # another's is none of this one's
                torch.testing.assert_close(self.run_model(), plain, rtol=0, atol=0)

    def test_a_deep_copy_runs_its_own_weights(self):
        with sparse.replace_attention(self.model, CONFIG, min_length=200, dense_steps=1) as handle:
            twin = copy.deepcopy(self.model)
            with torch.no_grad():
                for parameter in twin.parameters():
                    parameter.mul_(1.5)
                for _ in range(2):
                    of_twin = twin(self.x, self.text)
            self.assertEqual(handle.schedule.calls, 0)
            self.model.load_state_dict(twin.state_dict())
            for _ in range(2):
                of_model = self.run_model()
            torch.testing.assert_close(of_twin, of_model, rtol=0, atol=0)

    def test_first_steps_are_dense(self):
        plain = self.run_model()
        with sparse.replace_attention(self.model, CONFIG, min_length=200, dense_steps=2, calls_per_step=2) as handle:
            for repetition in range(2):
                kinds = [bool((self.run_model() == plain).all()) for _ in range(6)]
                self.assertEqual(kinds, [True] * 4 + [False] * 2, repetition)
                self.assertEqual(handle.schedule.step, 2)
                handle.restart()

    def test_gradients_with_checkpoints(self):
        results = []
        for checkpoint in (False, True):
            self.model.checkpoint = checkpoint
            with sparse.replace_attention(self.model, CONFIG, min_length=200):
                self.model.zero_grad()
                self.model(self.x, self.text).square().mean().backward()
            results.append(self.model.blocks[0]["self"].qkv.weight.grad.clone())
        torch.testing.assert_close(*results)

    def test_compiled_model(self):
        with sparse.replace_attention(self.model, CONFIG, min_length=200):
            plain = self.run_model()
            compiled = torch.compile(self.model, fullgraph=True, backend="aot_eager")
            with torch.no_grad():
                torch.testing.assert_close(compiled(self.x, self.text), plain)

    def test_what_sparse_attention_is_not(self):
        layer = SelfAttention()
        mask = torch.ones(400, 400, dtype=torch.bool)
        with sparse.replace_attention(layer, CONFIG, min_length=200):
            with self.assertRaisesRegex(NotImplementedError, "attn_mask"):
                layer(self.x, mask)
        plain = layer(self.x, mask)
        with sparse.replace_attention(layer, CONFIG, min_length=200, on_refusal="dense"):
            torch.testing.assert_close(layer(self.x, mask), plain, rtol=0, atol=0)
        with self.assertRaisesRegex(ValueError, "select"):
            sparse.replace_attention(nn.Linear(2, 2))

    def test_statistics(self):
        with sparse.replace_attention(self.model, CONFIG, min_length=200, statistics=True) as handle:
            self.run_model()
            self.run_model()
        rows = handle.statistics.rows
        self.assertEqual([row["layer"] for row in rows], ["blocks.0.self", "blocks.1.self"] * 2)
        self.assertEqual([row["step"] for row in rows], [0, 0, 1, 1])
        for row in rows:
            self.assertTrue(0 < row["density"] < 1 and row["density"] < row["recall"] + 0.3 and row["recall"] <= 1.0001)
        for config in (spargejit.AttentionConfig(method="dense"), method_all()):
            with sparse.replace_attention(self.model, config, min_length=200, statistics=True) as handle:
                self.run_model()
            self.assertEqual(len(handle.statistics.rows), 2)
            for row in handle.statistics.rows:
                self.assertAlmostEqual(row["recall"], 1, places=4)
                self.assertEqual(row["density"], 1)
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            self.skipTest("matplotlib is not installed: no picture")
        with tempfile.TemporaryDirectory() as folder:
            handle.statistics.plot(os.path.join(folder, "figure.png"))
            self.assertGreater(os.path.getsize(os.path.join(folder, "figure.png")), 1000)


def method_all():
    """Every block, by a method that selects."""
    return spargejit.AttentionConfig(method="topk", top_k=1.0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
