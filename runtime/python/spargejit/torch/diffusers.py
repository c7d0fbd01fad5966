# SPDX-License-Identifier: Apache-2.0
"""Attention processors for diffusers' video and image transformers. Each runs the
processor that was there, with its projections, norms and rotary embedding, and makes
the attention inside sparse. Text tokens that share a sequence with the video stay
dense: all attend to them, and they attend to all.

    from spargejit.torch import diffusers
    handle = diffusers.install(pipeline.transformer, spargejit.AttentionConfig(top_k=0.03, top_p=0.2))
"""
from .layers import Interception, Layer, Schedule, layer_configs
from .replace import Replacement
from .statistics import Statistics


class SparseProcessor:
    """`inner`: the processor that it stands for. `shared`: what the processors of one
    model tell each other."""

    def __init__(self, inner, layer, shared):
        self.inner, self.layer, self.shared = inner, layer, shared
        for name in ("_attention_backend", "_parallel_config"):
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))

    def text_tokens(self, hidden_states, encoder_hidden_states):
        """[begin, end) of the text in the sequence that is attended, or None for a call
        that stays dense (cross attention)."""
        raise NotImplementedError

    prepare = None  # changes the arguments of SDPA

    # diffusers passes on what it finds among the names of these parameters alone.
    def __call__(self, attn, hidden_states, encoder_hidden_states=None, attention_mask=None, image_rotary_emb=None,
                 **kwargs):
        return self._run(attn, hidden_states, encoder_hidden_states, attention_mask, image_rotary_emb=image_rotary_emb,
                         **kwargs)

    def _run(self, attn, hidden_states, encoder_hidden_states, attention_mask, **kwargs):
        text = self.text_tokens(hidden_states, encoder_hidden_states)
        if text is None:
            return self.inner(attn, hidden_states, encoder_hidden_states, attention_mask, **kwargs)
        with Interception(self.layer, text if text[1] > text[0] else None, self.prepare):
            return self.inner(attn, hidden_states, encoder_hidden_states, attention_mask, **kwargs)


class LTXProcessor(SparseProcessor):
    """LTXVideoTransformer3DModel: attn1 attends to the video alone, attn2 to the text."""

    def text_tokens(self, hidden_states, encoder_hidden_states):
        return (0, 0) if encoder_hidden_states is None else None


class WanProcessor(LTXProcessor):
    """WanTransformer3DModel: likewise, with another name for the embedding."""

    def __call__(self, attn, hidden_states, encoder_hidden_states=None, attention_mask=None, rotary_emb=None):
        return self._run(attn, hidden_states, encoder_hidden_states, attention_mask, rotary_emb=rotary_emb)


class CogVideoXProcessor(SparseProcessor):
    """CogVideoXTransformer3DModel: text, then video."""

    def text_tokens(self, hidden_states, encoder_hidden_states):
        return 0, encoder_hidden_states.shape[1]


class FluxProcessor(SparseProcessor):
    """FluxTransformer2DModel: text, then image; blocks of a single stream are given
    both as one, and the text is as long as in the blocks before."""

    def text_tokens(self, hidden_states, encoder_hidden_states):
        if encoder_hidden_states is not None:
            self.shared["text_length"] = encoder_hidden_states.shape[1]
        elif "text_length" not in self.shared:
            raise ValueError(f"{self.layer.name}: expected a block with text beside the image to run first, got a "
                             "block of a single stream")
        return 0, self.shared["text_length"]


class HunyuanVideoProcessor(SparseProcessor):
    """HunyuanVideoTransformer3DModel: video, then text, whose padding at the end a mask
    of keys hides: these keys are left out instead."""

    def text_tokens(self, hidden_states, encoder_hidden_states):
        if encoder_hidden_states is None:
            return 0, 0
        return hidden_states.shape[1], hidden_states.shape[1] + encoder_hidden_states.shape[1]

    def prepare(self, query, key, value, attn_mask=None, **kwargs):
        if attn_mask is not None:
            visible = self._visible_keys(attn_mask, key.shape[2])
            # The view keeps the strides of whole rows.
            key, value = key[:, :, :visible], value[:, :, :visible]
        return (), {"query": query, "key": key, "value": value, **kwargs}

    def _visible_keys(self, mask, length):
        """How many keys the mask shows. Reads it once for each mask: all layers of a
        step are given the same."""
        known = self.shared.get("mask")
        if known is not None and known[0] is mask:
            return known[1]
        counts = mask.sum(-1).flatten().unique().tolist()
        if mask.dtype.is_floating_point or len(counts) != 1 or not bool(mask[..., :counts[0]].all()):
            raise NotImplementedError(f"{self.layer.name}: attn_mask: expected a bool mask that hides the same number "
                                      f"of keys at the end for all, got one of {mask.dtype} that shows {counts} of "
                                      f"{length}")
        self.shared["mask"] = (mask, counts[0])
        return counts[0]


# By a word of the transformer's class name.
PROCESSORS = {"Wan": WanProcessor, "HunyuanVideo": HunyuanVideoProcessor, "CogVideoX": CogVideoXProcessor,
              "LTX": LTXProcessor, "Flux": FluxProcessor}


def processor_class(transformer):
    name = type(transformer).__name__
    for word, processor in PROCESSORS.items():
        if name.startswith(word):
            return processor
    raise ValueError(f"transformer: expected a class of {', '.join(PROCESSORS)}, got {name}; "
                     "spargejit.torch.replace_attention() takes any model")


def _is_attention(name, module):
    # HunyuanVideo refines its text by attention of its own.
    return callable(getattr(module, "processor", None)) and not name.startswith("context_embedder.")


def install(transformer, config=None, *, min_length=1024, dense_steps=0, calls_per_step=1, statistics=False):
    """Gives every attention of a transformer a sparse processor; arguments and result
    as replace_attention()'s."""
    kind = processor_class(transformer)
    modules = [(name, module) for name, module in transformer.named_modules() if _is_attention(name, module)]
    if not modules:
        raise ValueError(f"transformer: expected modules with a processor in {type(transformer).__name__}, got none")
    if any(isinstance(module.processor, SparseProcessor) for _, module in modules):
        raise ValueError("transformer: expected its own processors, got sparse ones; remove() of the handle that an "
                         "earlier install() gave restores them")
    config_for = layer_configs(config, [name for name, _ in modules])
    schedule, shared = Schedule(dense_steps, calls_per_step), {}
    figures = Statistics() if statistics else None
    layers = [Layer(name, config_for(name, index), schedule, min_length, statistics=figures)
              for index, (name, _) in enumerate(modules)]
    handle = Replacement(transformer, layers, schedule, figures)
    for (_, module), layer in zip(modules, layers):
        inner = module.processor
        module.processor = kind(inner, layer, shared)
        handle._undo.append(lambda module=module, inner=inner: setattr(module, "processor", inner))
    return handle
