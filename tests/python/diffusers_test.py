# SPDX-License-Identifier: Apache-2.0
"""The processors of spargejit.torch.diffusers, on modules with the interface of
diffusers' (projections, a processor, a sequence of text and video in each family's
order), and where diffusers is installed on its own small transformers. Skipped where
PyTorch is not installed.
"""
import inspect
import sys
import unittest

try:
    import torch
except ImportError:
    print("skipped: PyTorch is not installed")
    sys.exit(77)
import reference  # noqa: E402
import spargejit  # noqa: E402
import spargejit.torch.diffusers as ours  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

WIDTH, HEADS, VIDEO, TEXT = 64, 2, 300, 20
ALL = spargejit.AttentionConfig(method="topk", top_k=1.0, mask_block=(64, 32))
FEW = ALL.replaced(top_k=0.1)


def setUpModule():
    torch.manual_seed(int(reference.generator().integers(2 ** 31)))


def relative_l2(value, expected):
    return float((value - expected).norm() / expected.norm())


class Attention(nn.Module):
    """diffusers' Attention as far as processors know it."""

    def __init__(self, processor):
        super().__init__()
        self.heads = HEADS
        for name in ("to_q", "to_k", "to_v", "to_out"):
            setattr(self, name, nn.Linear(WIDTH, WIDTH))
        self.processor = processor

    def forward(self, hidden_states, encoder_hidden_states=None, attention_mask=None, **kwargs):
        return self.processor(self, hidden_states, encoder_hidden_states=encoder_hidden_states,
                              attention_mask=attention_mask, **kwargs)


class Processor:
    """What the processors of a family have in common: how text and video make one
    sequence, and that attention is torch's."""

    def __init__(self, text):
        self.text = text  # "first", "last", or None where text is attended to by itself
        self.embeddings = []

    def __call__(self, attn, hidden_states, encoder_hidden_states=None, attention_mask=None, **embedding):
        self.embeddings.append(embedding)
        x = y = hidden_states
        if encoder_hidden_states is not None:
            if self.text is None:
                y = encoder_hidden_states
            elif self.text == "first":
                x = y = torch.cat([encoder_hidden_states, hidden_states], 1)
            else:
                x = y = torch.cat([hidden_states, encoder_hidden_states], 1)
        q, k, v = (project(z).unflatten(2, (HEADS, -1)).transpose(1, 2)
                   for project, z in ((attn.to_q, x), (attn.to_k, y), (attn.to_v, y)))
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=attention_mask, dropout_p=0.0, is_causal=False)
        o = attn.to_out(o.transpose(1, 2).flatten(2))
        if encoder_hidden_states is None or self.text is None:
            return o
        length = encoder_hidden_states.shape[1]
        return (o[:, length:], o[:, :length]) if self.text == "first" else (o[:, :-length], o[:, -length:])


def transformer(name, text, forward):
    """A transformer of that class name: attn1 and attn2, used as `forward` says."""
    return type(name, (nn.Module,), {
        "__init__": lambda self: (nn.Module.__init__(self), setattr(self, "attn1", Attention(Processor(text))),
                                  setattr(self, "attn2", Attention(Processor(text))), None)[-1],
        "forward": forward})()


def self_then_cross(self, video, text):
    video = video + self.attn1(video)
    return video + self.attn2(video, text)


def jointly(self, video, text, **kwargs):
    video, text = self.attn1(video, text, **kwargs)
    return torch.cat(self.attn2(video, text, **kwargs), 1)


def jointly_then_as_one(self, video, text):
    video, text = self.attn1(video, text)
    return self.attn2(torch.cat([text, video], 1))


CASES = {  # transformer, tokens of text in the sequence
    "WanTransformer3DModel": (None, self_then_cross, None),
    "LTXVideoTransformer3DModel": (None, self_then_cross, None),
    "CogVideoXTransformer3DModel": ("first", jointly, (0, TEXT)),
    "FluxTransformer2DModel": ("first", jointly_then_as_one, (0, TEXT)),
    "HunyuanVideoTransformer3DModel": ("last", jointly, (VIDEO, VIDEO + TEXT)),
}


class FakeModulesTest(unittest.TestCase):
    def setUp(self):
        self.video, self.text = torch.randn(1, VIDEO, WIDTH), torch.randn(1, TEXT, WIDTH)

    def run_model(self, model, **kwargs):
        with torch.no_grad():
            return model(self.video, self.text, **kwargs)

    def test_every_family(self):
        for name, (text, forward, _) in CASES.items():
            with self.subTest(name):
                model = transformer(name, text, forward)
                plain = self.run_model(model)
                with ours.install(model, ALL, min_length=200) as handle:
                    self.assertLess(relative_l2(self.run_model(model), plain), 1e-5)
                    sparse_calls = [layer.sparse_calls for layer in handle.layers]
                    self.assertEqual(sparse_calls, [1, 0] if forward is self_then_cross else [1, 1])
                with ours.install(model, FEW, min_length=200):
                    self.assertGreater(relative_l2(self.run_model(model), plain), 1e-4)
                with ours.install(model, FEW, min_length=200, dense_steps=1):
                    torch.testing.assert_close(self.run_model(model), plain, rtol=0, atol=0)
                torch.testing.assert_close(self.run_model(model), plain, rtol=0, atol=0)
                self.assertIsInstance(model.attn1.processor, Processor)

    def test_text_stays_dense(self):
        for name, (text, forward, tokens) in CASES.items():
            if tokens is None:
                continue
            with self.subTest(name):
                model = transformer(name, text, forward)
                seen = []
                with ours.install(model, FEW, min_length=200) as handle:
                    for layer in handle.layers:
                        layer.attend = lambda *args, _attend=layer.attend, **kwargs: (
                            seen.append((kwargs["text"], kwargs.get("query", args[0] if args else None).shape[2])),
                            _attend(*args, **kwargs))[1]
                    o = self.run_model(model)
                self.assertEqual(seen, [(tokens, VIDEO + TEXT)] * 2)
                # Rows of text attend to everything: as in a dense call.
                first = self.first_text_rows(model, text)
                with ours.install(model, FEW, min_length=200):
                    self.assertLess(relative_l2(self.first_text_rows(model, text), first), 1e-5)
                self.assertEqual(o.shape, (1, VIDEO + TEXT, WIDTH))

    def first_text_rows(self, model, _):
        with torch.no_grad():
            return model.attn1(self.video, self.text)[1]

    def test_padding_of_hunyuan_s_text(self):
        model = transformer("HunyuanVideoTransformer3DModel", "last", jointly)
        mask = torch.ones(1, 1, 1, VIDEO + TEXT, dtype=torch.bool)
        mask[..., VIDEO + 7:] = False
        plain = self.run_model(model, attention_mask=mask)
        with ours.install(model, ALL, min_length=200) as handle:
            self.assertLess(relative_l2(self.run_model(model, attention_mask=mask), plain), 1e-5)
            self.assertEqual([layer.sparse_calls for layer in handle.layers], [1, 1])
            holes = mask.clone()
            holes[..., 3] = False
            with self.assertRaisesRegex(NotImplementedError, "attn_mask"):
                self.run_model(model, attention_mask=holes)

    def test_rotary_embeddings_are_passed_on(self):
        # diffusers looks at the parameters of the processor's call.
        for name, word in (("WanTransformer3DModel", "rotary_emb"), ("FluxTransformer2DModel", "image_rotary_emb")):
            model = transformer(name, CASES[name][0], CASES[name][1])
            with ours.install(model, FEW, min_length=200):
                self.assertIn(word, inspect.signature(model.attn1.processor.__call__).parameters)
                embedding = object()
                with torch.no_grad():
                    model.attn1(self.video, None if word == "rotary_emb" else self.text, **{word: embedding})
                self.assertEqual(model.attn1.processor.inner.embeddings, [{word: embedding}])

    def test_other_transformers_are_refused(self):
        with self.assertRaisesRegex(ValueError, "replace_attention"):
            ours.install(nn.Linear(2, 2))
        with self.assertRaisesRegex(ValueError, "processor"):
            ours.install(type("WanTransformer3DModel", (nn.Module,), {})())
        model = transformer("LTXVideoTransformer3DModel", *CASES["LTXVideoTransformer3DModel"][:2])
        with ours.install(model, FEW):
            with self.assertRaisesRegex(ValueError, "an earlier install"):
                ours.install(model, FEW)
        ours.install(model, FEW).remove()


def small_models():
    """(name, model, arguments) with diffusers' own classes, some 1 000 tokens each."""
    import diffusers
    tokens = {"hidden_states": torch.randn(1, 4, 4, 32, 32), "timestep": torch.tensor([500])}
    text = torch.randn(1, 12, 32)
    yield diffusers.WanTransformer3DModel(
        patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=24, in_channels=4, out_channels=4, text_dim=32,
        freq_dim=32, ffn_dim=64, num_layers=2, rope_max_seq_len=64), {**tokens, "encoder_hidden_states": text}
    yield diffusers.CogVideoXTransformer3DModel(
        num_attention_heads=2, attention_head_dim=24, in_channels=4, out_channels=4, time_embed_dim=8,
        text_embed_dim=32, num_layers=2, sample_width=32, sample_height=32, sample_frames=13, max_text_seq_length=12,
        use_rotary_positional_embeddings=False), {
            **tokens, "encoder_hidden_states": text}
    yield diffusers.LTXVideoTransformer3DModel(
        in_channels=8, out_channels=8, num_attention_heads=2, attention_head_dim=16, cross_attention_dim=32,
        num_layers=2, caption_channels=32), {
            "hidden_states": torch.randn(1, 1024, 8), "encoder_hidden_states": text, "timestep": torch.tensor([500.0]),
            "encoder_attention_mask": torch.ones(1, 12, dtype=torch.bool), "num_frames": 4, "height": 16, "width": 16}
    yield diffusers.FluxTransformer2DModel(
        in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=(4, 4, 8)), {
            "hidden_states": torch.randn(1, 1024, 4), "encoder_hidden_states": text, "timestep": torch.tensor([0.5]),
            "pooled_projections": torch.randn(1, 32), "txt_ids": torch.zeros(12, 3),
            "img_ids": torch.stack([torch.zeros(1024), torch.arange(1024) // 32, torch.arange(1024) % 32], 1)}
    mask = torch.ones(1, 12, dtype=torch.long)
    mask[:, 9:] = 0
    yield diffusers.HunyuanVideoTransformer3DModel(
        in_channels=4, out_channels=4, num_attention_heads=2, attention_head_dim=16, num_layers=1, num_single_layers=1,
        num_refiner_layers=1, patch_size=2, patch_size_t=1, guidance_embeds=False, text_embed_dim=32,
        pooled_projection_dim=32, rope_axes_dim=(4, 4, 8)), {
            **tokens, "encoder_hidden_states": text, "encoder_attention_mask": mask,
            "pooled_projections": torch.randn(1, 32)}


class RealModulesTest(unittest.TestCase):
    def test_small_transformers(self):
        try:
            import diffusers  # noqa: F401
        except ImportError:
            self.skipTest("diffusers is not installed")
        for model, arguments in small_models():
            with self.subTest(type(model).__name__), torch.no_grad():
                model.eval()
                plain = model(**arguments, return_dict=False)[0]
                with ours.install(model, ALL, min_length=500) as handle:
                    sparse = model(**arguments, return_dict=False)[0]
                    self.assertGreater(sum(layer.sparse_calls for layer in handle.layers), 1)
                self.assertLess(relative_l2(sparse, plain), 1e-5)
                with ours.install(model, FEW, min_length=500):
                    self.assertGreater(relative_l2(model(**arguments, return_dict=False)[0], plain), 1e-6)


if __name__ == "__main__":
    unittest.main(verbosity=2)
