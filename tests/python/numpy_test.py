# SPDX-License-Identifier: Apache-2.0
"""The package on NumPy arrays, on the CPU, against float64."""
import copy
import itertools
import pickle
import sys
import threading
import unittest

import numpy
import reference
import spargejit

# Relative L2: sums are float32, results rounded to the type (unit roundoffs 2^-24,
# 2^-11, 2^-8), and weights to the type in front of the second product.
BOUNDS = {"float32": 5e-6, "float16": 2e-3, "bfloat16": 1e-2}


class DrawnTest(unittest.TestCase):
    """What tests of drawn inputs share."""

    @classmethod
    def setUpClass(cls):
        cls.random = reference.generator()

    def draw(self, *shape, dtype="float32"):
        values = self.random.standard_normal(shape).astype(numpy.float32)
        return reference.to_bfloat16(values) if dtype == "bfloat16" else values.astype(dtype)

    def inputs(self, q_heads=4, kv_heads=2, q_len=333, kv_len=450, head_dim=64, dtype="float32"):
        return tuple(self.draw(1, heads, length, head_dim, dtype=dtype)
                     for heads, length in ((q_heads, q_len), (kv_heads, kv_len), (kv_heads, kv_len)))

    def expect_close(self, value, expected, bound):
        self.assertEqual(value.shape, expected.shape)
        self.assertLess(reference.relative_l2(value, expected), bound)


class NumpyTest(DrawnTest):
    def test_dense_in_every_type(self):
        for dtype, causal in itertools.product(BOUNDS, (False, True)):
            with self.subTest(dtype=dtype, causal=causal):
                q, k, v = self.inputs(dtype=dtype)
                o = spargejit.attention(q, k, v, method="dense", causal=causal)
                self.assertEqual(o.dtype, q.dtype)
                expected, _, _ = reference.attention(q, k, v, reference.visible(333, 450, causal=causal))
                self.expect_close(o, expected, BOUNDS[dtype])

    def test_selected_lists_say_what_was_attended(self):
        q, k, v = self.inputs()
        for settings in ({"top_k": 0.3}, {"method": "topk", "top_k": 0.5}, {"method": "topp", "top_p": 0.6},
                         {"top_k": 0.2, "mask_block": (64, 32), "causal": True, "scale": -0.2}):
            with self.subTest(**settings):
                forward = spargejit.attention_forward(q, k, v, **settings)
                block = settings.get("mask_block", (128, 64))
                seen = reference.visible(333, 450, reference.mask_of(forward.lists), block,
                                         settings.get("causal", False))
                o, lse, _ = reference.attention(q, k, v, seen, settings.get("scale"))
                self.expect_close(forward.o, o, BOUNDS["float32"])
                numpy.testing.assert_allclose(forward.lse, lse, atol=2e-5)
                selected = spargejit.select_blocks(q, k, **settings)
                numpy.testing.assert_array_equal(selected.indices, forward.lists.indices)
                self.assertAlmostEqual(selected.density(), reference.mask_of(selected).mean())
                numpy.testing.assert_array_equal(spargejit.attention(q, k, v, **settings), forward.o)

    def test_masks_and_lists_of_the_caller(self):
        q, k, v = self.inputs()
        mask = self.random.random((1, 4, 3, 8)) < 0.4
        mask[0, 1, 2] = False  # rows that see nothing
        o = spargejit.block_sparse_attention(q, k, v, mask)
        expected, lse, _ = reference.attention(q, k, v, reference.visible(333, 450, mask))
        self.expect_close(o, expected, BOUNDS["float32"])
        self.assertTrue((o[0, 1, 256:] == 0).all())
        forward = spargejit.attention_forward(q, k, v, method="block_sparse", block_mask=mask)
        numpy.testing.assert_array_equal(reference.mask_of(forward.lists), mask)
        numpy.testing.assert_array_equal(forward.lse == -numpy.inf, lse == -numpy.inf)
        numpy.testing.assert_array_equal(spargejit.block_sparse_attention(q, k, v, forward.lists), o)

    def test_gradients(self):
        q, k, v = self.inputs()
        dout = self.draw(*q.shape)
        for settings in ({"method": "dense"}, {"top_k": 0.3}, {"top_k": 0.3, "causal": True, "scale": 0.3}):
            with self.subTest(**settings):
                forward = spargejit.attention_forward(q, k, v, **settings)
                self.assertEqual(forward.lists is None, settings.get("method") == "dense")
                mask = None if forward.lists is None else reference.mask_of(forward.lists)
                seen = reference.visible(333, 450, mask, causal=settings.get("causal", False))
                expected = reference.gradients(q, k, v, dout, seen, settings.get("scale"))
                for value, right in zip(spargejit.attention_backward(q, k, v, forward, dout, **settings), expected):
                    self.expect_close(value, right, 1e-5)

    def test_gradient_of_lse(self):
        q, k, v = self.inputs()
        forward = spargejit.attention_forward(q, k, v, method="dense")
        dlse = self.draw(*forward.lse.shape)
        dq, _, dv = spargejit.attention_backward(q, k, v, forward, numpy.zeros_like(q), dlse=dlse, method="dense")
        _, _, p = reference.attention(q, k, v, reference.visible(333, 450))
        expected = (p * dlse[..., None]) @ k.astype(numpy.float64).repeat(2, 1) / 8
        self.expect_close(dq, expected, 1e-5)
        self.assertTrue((dv == 0).all())

    def test_views_are_read_and_written_in_place(self):
        packed = self.draw(1, 300, 3, 2, 64)  # [batch, length, qkv, heads, dim]
        q, k, v = (packed[:, :, i].swapaxes(1, 2) for i in range(3))
        memory = numpy.full((1, 300, 2, 64), numpy.nan, numpy.float32)
        out = memory.swapaxes(1, 2)
        self.assertIs(spargejit.attention(q, k, v, method="dense", out=out), out)
        expected, _, _ = reference.attention(q, k, v, reference.visible(300, 300))
        self.expect_close(memory.swapaxes(1, 2), expected, BOUNDS["float32"])

    def test_arrays_that_are_not_what_they_seem(self):
        q, k, v = self.inputs(q_len=100, kv_len=100)
        swapped = q.astype(q.dtype.newbyteorder())
        for arguments in ((swapped, k, v), (q, k, swapped[:, :2])):
            with self.assertRaisesRegex(ValueError, "byte order"):
                spargejit.attention(*arguments)
        out = numpy.zeros_like(q)
        out.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "o: expected memory that may be written"):
            spargejit.attention(q, k, v, out=out)
        self.assertFalse(out.any())
        forward = spargejit.attention_forward(q, k, v)
        for array in (q, k, v, forward.o, forward.lse):
            array.flags.writeable = False  # what is read may be
        spargejit.attention_backward(q, k, v, forward, forward.o)
        with self.assertRaisesRegex(ValueError, "config.keptBytes: expected at least 0, got -1"):
            spargejit.attention_backward(q, k, v, forward, forward.o, kept_bytes=-1)
        with self.assertRaisesRegex(ValueError, "dk: expected memory that may be written"):
            spargejit.attention_backward(q, k, v, forward, q, out=(numpy.empty_like(q), k, numpy.empty_like(v)))

    def test_arrays_without_elements(self):
        for batch, length in ((0, 100), (2, 0)):
            x = numpy.empty((batch, 2, length, 64), numpy.float32)
            forward = spargejit.attention_forward(x, x, x)
            self.assertEqual(forward.o.shape, x.shape)
            for slope in spargejit.attention_backward(x, x, x, forward, x):
                self.assertEqual(slope.shape, x.shape)
        self.assertFalse(spargejit.attention(self.draw(2, 2, 100, 64), x, x).any())  # no key: rows of 0

    def test_shares_by_head(self):
        q, k, v = self.inputs()
        by_head = numpy.array([0.125, 0.25, 0.5, 1], numpy.float32)
        lists = spargejit.select_blocks(q, k, method="topk", top_k_by_head=by_head)
        numpy.testing.assert_array_equal(lists.counts[0, :, 0], [1, 2, 4, 8])
        again = spargejit.select_blocks(q, k, method="topk", top_k=1.0, out=lists)
        self.assertIs(again, lists)
        self.assertTrue((lists.counts == 8).all())

    def test_distillation_loss(self):
        student, teacher = self.draw(3, 50, 7), self.draw(3, 50, 7)
        loss, slope = spargejit.distillation_loss(student, teacher, loss_scale=4)
        difference = student.astype(float) - teacher
        self.assertAlmostEqual(loss[0] / (4 * (difference ** 2).mean()), 1, places=5)
        self.expect_close(slope, 8 * difference / difference.size, 1e-6)
        self.assertIsNone(spargejit.distillation_loss(student, teacher, gradient=False)[1])

    def test_dlpack(self):
        class Foreign:  # an array of a framework that the package does not know
            def __init__(self, array):
                self.array, self.shape = array, array.shape

            def __dlpack__(self, **_):
                return self.array.__dlpack__()
        q, k, v = self.inputs()
        out = numpy.full_like(q, numpy.nan)
        spargejit.attention(*(Foreign(x) for x in (q, k, v)), method="dense", out=Foreign(out))
        numpy.testing.assert_array_equal(out, spargejit.attention(q, k, v, method="dense"))
        with self.assertRaisesRegex(TypeError, "out="):
            spargejit.attention(*(Foreign(x) for x in (q, k, v)), method="dense")

    @unittest.skipUnless("ml_dtypes" in sys.modules or __import__("importlib.util").util.find_spec("ml_dtypes"),
                         "ml_dtypes is not installed")
    def test_ml_dtypes(self):
        import ml_dtypes
        q, k, v = self.inputs(dtype="bfloat16")
        o = spargejit.attention(*(x.view(ml_dtypes.bfloat16) for x in (q, k, v)), top_k=0.2)
        self.assertEqual(o.dtype, ml_dtypes.bfloat16)
        numpy.testing.assert_array_equal(o.view(numpy.uint16), spargejit.attention(q, k, v, top_k=0.2))

    @staticmethod
    def kernels_made():
        """Those of an earlier process come from the cache folder."""
        counters = spargejit.counters()
        return counters["kernels_compiled"] + counters["kernels_from_disk"]

    def test_prepare_workspace_and_tuning(self):
        q, k, v = self.inputs(head_dim=40)
        config = spargejit.AttentionConfig(top_k=0.3)
        spargejit.prepare(q, k, v, config)
        spargejit.prepare_backward(q, k, v, config)
        before = self.kernels_made()
        self.assertGreater(before, 0)
        forward = spargejit.attention_forward(q, k, v, config)
        spargejit.attention(q, k, v, config)
        spargejit.attention_backward(q, k, v, forward, q, config)
        self.assertEqual(self.kernels_made(), before)
        self.assertGreaterEqual(spargejit.workspace_bytes(q, k, v, config, backward=True), 4 * 4 * 333)
        self.assertIn(spargejit.tuning_of(q, k, v, config)["quality"], ("default", "other code generator", "exact",
                                                                        "nearest shape", "same architecture"))

    def test_threads_call_side_by_side(self):
        q, k, v = self.inputs()
        expected = [spargejit.attention(q, k, v, top_k=share) for share in (0.1, 0.3, 0.5, 0.9)]
        wrong = []

        def work(i):
            for _ in range(20):
                if not (spargejit.attention(q, k, v, top_k=(0.1, 0.3, 0.5, 0.9)[i]) == expected[i]).all():
                    wrong.append(i)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class RefusalsTest(unittest.TestCase):
    def setUp(self):
        self.q = numpy.ones((1, 2, 100, 32), numpy.float32)

    def refused(self, error, pattern, *arguments, **settings):
        with self.assertRaisesRegex(error, pattern):
            spargejit.attention(*(arguments or (self.q, self.q, self.q)), **settings)

    def test_messages_are_the_library_s(self):
        q = self.q
        self.refused(ValueError, r"k\.sizes\[3\]: expected headDim 32 as in q, got 16", q, q[..., :16], q)
        self.refused(spargejit.InvalidArgumentError, "config.topK", top_k=2.0)
        self.refused(ValueError, "no_such_method", method="no_such_method")
        self.refused(ValueError, "config.maskBlockQ", mask_block=(100, 64))
        self.refused(ValueError, "k.dtype", q, q.astype(numpy.float16), q)
        self.refused(ValueError, "config.blockMask", method="block_sparse")
        self.refused(ValueError, "o.*overlap|overlap.*o", out=self.q)

    def test_arguments_that_are_no_tensors(self):
        q = self.q
        self.refused(TypeError, "got list", [1.0], q, q)
        self.refused(TypeError, "k: expected a tensor of the same framework", q, 3, q)
        self.refused(ValueError, "q: expected float32.*float64", *[q.astype(float)] * 3)
        self.refused(ValueError, "q: expected strides of whole elements",
                     numpy.zeros((1, 2, 100, 33), "f4,i1")["f0"][..., :32], q, q)
        self.refused(TypeError, "config: expected an AttentionConfig, got dict", q, q, q, {})
        self.refused(TypeError, "top_q", top_q=1)
        lists = spargejit.select_blocks(q, q)
        for wrong, error, pattern in ((tuple(lists), TypeError, "lists: expected BlockLists, got tuple"),
                                      (lists._replace(indices=[0]), TypeError, "lists.indices: .*got list"),
                                      (lists._replace(counts=lists.counts.astype(int)), ValueError, "lists.counts: "),
                                      (lists._replace(kv_len=100.0), ValueError, "lists: expected two integers"),
                                      (lists._replace(mask_block=None), ValueError, "lists: expected two integers")):
            self.refused(error, pattern, method="block_sparse", lists=wrong)
        with self.assertRaisesRegex(ValueError, "q: expected 4 dimensions"):
            spargejit.select_blocks(q[0], q)

    def test_texts_of_settings_live_as_long_as_the_call(self):
        # So long that its memory goes back to the system when it is freed.
        method = "x" * (1 << 22)
        q = self.q
        for call in (spargejit.workspace_bytes, spargejit.tuning_of, spargejit.prepare, spargejit.prepare_backward,
                     spargejit.attention, spargejit.attention_forward):
            with self.subTest(call.__name__), self.assertRaises(ValueError) as caught:
                call(q, q, q, method=method)
            self.assertTrue(str(caught.exception).endswith(f'got "{method}"'))

    def test_read_only_results_stay_as_they_are(self):
        lists = spargejit.select_blocks(self.q, self.q)
        lists.counts[...] = 7
        lists.counts.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "lists.counts: expected memory that may be written"):
            spargejit.select_blocks(self.q, self.q, out=lists)
        self.assertTrue((lists.counts == 7).all())
        half = self.q.astype(numpy.float16)
        rounded = spargejit.quantise(half, half, half)
        rounded.v_scales[...] = 7
        rounded.v_scales.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "out.v_scales: expected memory that may be written"):
            spargejit.quantise(half, half, half, out=rounded)
        self.assertTrue((rounded.v_scales == 7).all())
        with self.assertRaisesRegex(ValueError, "lists.indices"):
            spargejit.select_blocks(self.q, self.q, out=lists._replace(indices=numpy.broadcast_to(
                lists.indices[:, :1], lists.indices.shape)))

    def test_each_argument_has_its_name(self):
        q, half = self.q, self.q.astype(numpy.float16)
        rounded, forward = spargejit.quantise(half, half, half), spargejit.attention_forward(q, q, q)
        eight = {"method": "dense", "precision": "fp8_fast"}
        for error, pattern, call in (
                (TypeError, "^q: .*got list", lambda: spargejit.attention([1.0], q, q)),
                (TypeError, "^k: .*got NoneType", lambda: spargejit.select_blocks(q, None)),
                (TypeError, "^stream: .*'fast'", lambda: spargejit.attention(q, q, q, stream="fast")),
                # Eight bits are what 8-bit arguments take alone.
                (ValueError, "^q: .*array of uint8", lambda: spargejit.attention(*[q.astype(numpy.uint8)] * 3)),
                (ValueError, "^block_mask: .*array of uint8",
                 lambda: spargejit.block_sparse_attention(q, q, q, numpy.ones((1, 2, 1, 2), numpy.uint8))),
                (TypeError, "^student: ", lambda: spargejit.distillation_loss([1.0], q)),
                (TypeError, "^teacher: .* as student, got list", lambda: spargejit.distillation_loss(q, [1.0])),
                (ValueError, "^student: .*float64", lambda: spargejit.distillation_loss(q.astype(float), q)),
                (ValueError, "^teacher: .*float64", lambda: spargejit.distillation_loss(q, q.astype(float))),
                (TypeError, "^loss_scale: .*'much'", lambda: spargejit.distillation_loss(q, q, loss_scale="much")),
                (TypeError, "^forward: .*got tuple", lambda: spargejit.attention_backward(q, q, q, tuple(forward), q)),
                (TypeError, "^out: .*three tensors.*of 2",
                 lambda: spargejit.attention_backward(q, q, q, forward, q, out=(q, q))),
                (NotImplementedError, "q.dtype: expected bfloat16 or float16.*got float32",
                 lambda: spargejit.quantise(q, q, q)),
                (TypeError, "^out: expected a Quantised, got list", lambda: spargejit.quantise(half, half, half, out=[])),
                (TypeError, "^tensors: expected a Quantised, got tuple",
                 lambda: spargejit.attention_quantised(tuple(rounded), **eight)),
                (ValueError, "^tensors.dtype: .*None",
                 lambda: spargejit.attention_quantised(rounded._replace(dtype=None), **eight)),
                (TypeError, "^tensors.q: .*NoneType",
                 lambda: spargejit.attention_quantised(rounded._replace(q=None), **eight)),
                (ValueError, "tensors.k: expected a tensor, got null",
                 lambda: spargejit.attention_quantised(rounded._replace(k=None), **eight)),
                (ValueError, "tensors.k.rank: ",
                 lambda: spargejit.attention_quantised(rounded._replace(k=rounded.k.ravel()), **eight)),
                (ValueError, "^tensors.v_scales: .*float64",
                 lambda: spargejit.attention_quantised(rounded._replace(v_scales=rounded.v_scales.astype(float)),
                                                       **eight)),
                (ValueError, "o.dtype: expected bfloat16 or float16, got float32",
                 lambda: spargejit.attention_quantised(rounded, out=numpy.empty_like(q), **eight))):
            with self.subTest(pattern), self.assertRaisesRegex(error, pattern):
                call()

    def test_configs(self):
        config = spargejit.AttentionConfig(top_k=0.1, mask_block=[64, 32])
        self.assertEqual(config.mask_block, (64, 32))
        self.assertEqual(config, pickle.loads(pickle.dumps(config)))
        self.assertEqual(config, copy.deepcopy(config))
        self.assertEqual(hash(config), hash(config.replaced()))
        self.assertNotEqual(config, config.replaced(causal=True))
        self.assertEqual(repr(config), "AttentionConfig(top_k=0.1, mask_block=(64, 32))")
        for setting, error in (({"mask_block": 64}, ValueError), ({"mask_block": (64.0, 32)}, ValueError),
                               ({"dense_keys": (1,)}, ValueError), ({"method": None}, TypeError),
                               ({"custom_source": None}, TypeError), ({"top_k": None}, TypeError),
                               ({"top_p": "much"}, TypeError), ({"scale": "small"}, TypeError),
                               ({"causal": "no"}, TypeError), ({"threads": 1.5}, TypeError),
                               ({"threads": 2 ** 40}, ValueError), ({"kept_bytes": 2 ** 63}, ValueError),
                               ({"kept_bytes": 0.5}, TypeError), ({"dense_rows": (0, 2 ** 64)}, ValueError),
                               ({"top_k": 10 ** 400}, ValueError), ({"causal": numpy.inf}, ValueError),
                               ({"method": "dense\0topk"}, ValueError), ({"custom_source": "\0"}, ValueError),
                               ({"method": "dense\ud800"}, ValueError)):
            with self.subTest(setting), self.assertRaisesRegex(error, "^" + next(iter(setting)) + ": expected"):
                q = numpy.ones((1, 1, 64, 32), numpy.float32)
                spargejit.attention(q, q, q, **setting)
        with self.assertRaises(AttributeError):
            config.top_k = 0.2
        with self.assertRaisesRegex(ValueError, "tune"):
            spargejit.AttentionConfig(tune="always")
        with self.assertRaisesRegex(ValueError, "precision: expected one of inputs, fp8_exact"):
            spargejit.AttentionConfig(precision="fp4")


class EightBitTest(DrawnTest):
    """Bounds are those of tests/reference/Comparison.cpp, for normal inputs."""

    def test_every_precision(self):
        for precision, dtype in itertools.product(("fp8_exact", "fp8_balanced", "fp8_fast"), ("float16", "bfloat16")):
            with self.subTest(precision=precision, dtype=dtype):
                q, k, v = self.inputs(dtype=dtype)
                o = spargejit.attention(q, k, v, method="dense", precision=precision)
                expected, _, _ = reference.attention(q, k, v, reference.visible(333, 450))
                self.expect_close(o, expected, 0.09)
                rounded = spargejit.quantise(q, k, v)
                self.assertEqual(rounded.dtype, dtype)
                again = spargejit.attention_quantised(rounded, method="dense", precision=precision)
                numpy.testing.assert_array_equal(again, o)
                for array in rounded[:6]:
                    array[...] = 0
                self.assertIs(spargejit.quantise(q, k, v, out=rounded), rounded)
                again = spargejit.attention_quantised(rounded, out=again, method="dense", precision=precision)
                numpy.testing.assert_array_equal(again, o)

    def test_lists_are_those_of_the_inputs(self):
        q, k, v = self.inputs(dtype="float16")
        forward = spargejit.attention_forward(q, k, v, top_k=0.3, precision="fp8_balanced")
        lists = spargejit.select_blocks(q, k, top_k=0.3)
        numpy.testing.assert_array_equal(forward.lists.indices, lists.indices)
        rounded = spargejit.quantise(q, k, v)
        o = spargejit.attention_quantised(rounded, method="block_sparse", lists=lists, precision="fp8_balanced")
        numpy.testing.assert_array_equal(o, forward.o)

    def test_what_is_not_there_is_refused(self):
        q, k, v = self.inputs()
        with self.assertRaisesRegex(NotImplementedError, "q.dtype: expected bfloat16 or float16"):
            spargejit.attention(q, k, v, precision="fp8_fast")
        q, k, v = self.inputs(dtype="float16")
        forward = spargejit.attention_forward(q, k, v, precision="fp8_fast")
        with self.assertRaisesRegex(NotImplementedError, "config.precision.*backward"):
            spargejit.attention_backward(q, k, v, forward, forward.o, precision="fp8_fast")
        with self.assertRaisesRegex(ValueError, "config.method"):
            spargejit.attention_quantised(spargejit.quantise(q, k, v), method="topk", precision="fp8_fast")


class LibraryTest(unittest.TestCase):
    def test_info(self):
        info = spargejit.info()
        self.assertEqual(info["version"], spargejit.__version__)
        self.assertIn("spargeattention2", info["methods"])
        self.assertIn("found", info["cuda"])

    def test_log_takes_functions(self):
        with self.assertRaisesRegex(TypeError, "callback: expected a function"):
            spargejit.set_log("debug")

    def test_log_lines(self):
        lines = []
        spargejit.set_log(lambda level, line: lines.append((level, line)))
        x = numpy.ones((1, 1, 64, 24), numpy.float32)
        spargejit.attention(x, x, x, method="dense")
        spargejit.set_log(None)
        count = len(lines)
        self.assertGreater(count, 0)
        self.assertIn(lines[0][0], ("debug", "info", "warning"))
        spargejit.attention(x.astype(numpy.float16), *[x.astype(numpy.float16)] * 2, method="dense")
        self.assertEqual(len(lines), count)


if __name__ == "__main__":
    unittest.main(verbosity=2)
