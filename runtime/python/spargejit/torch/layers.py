# SPDX-License-Identifier: Apache-2.0
"""One attention layer of a model that was made sparse: which of its calls of
scaled_dot_product_attention are sparse, with what settings, and what they did.
"""
import threading

import torch

from ..config import DEFAULT, AttentionConfig
from .sdpa import refusal, scaled_dot_product_attention
from .statistics import Measurement

_SDPA = torch.nn.functional.scaled_dot_product_attention


class Schedule:
    """Which denoising step a model is at, told by how often its forward() has run."""

    def __init__(self, dense_steps, calls_per_step):
        if dense_steps < 0 or calls_per_step < 1:
            raise ValueError(f"dense_steps, calls_per_step: expected 0 and more, 1 and more, got {dense_steps}, "
                             f"{calls_per_step}")
        self.dense_calls = dense_steps * calls_per_step
        self.calls_per_step = calls_per_step
        self.calls = 0

    @property
    def step(self):
        return max(0, self.calls - 1) // self.calls_per_step

    @property
    def is_dense(self):
        return self.calls <= self.dense_calls

    def count(self, *_):
        """A forward pre-hook. Compiled code counts where it must: each count is another
        constant to it."""
        if self.dense_calls or not torch.compiler.is_compiling():
            self.calls += 1

    def restart(self):
        """The next call of the model is the first step of another video."""
        self.calls = 0


class Layer:
    """`config` None leaves the layer dense. `on_refusal`: "raise", or "dense" where
    what sparse attention does not do is left to torch."""

    def __init__(self, name, config, schedule, min_length, on_refusal="raise", statistics=None):
        if on_refusal not in ("raise", "dense"):
            raise ValueError(f"on_refusal: expected 'raise' or 'dense', got {on_refusal!r}")
        if config is not None and not isinstance(config, AttentionConfig):
            raise TypeError(f"config: expected an AttentionConfig or None for layer {name!r}, got {config!r}")
        self.name, self.config, self.schedule, self.min_length = name, config, schedule, min_length
        self.on_refusal, self.statistics = on_refusal, statistics
        self.sparse_calls = 0  # outside of compiled code

    def attend(self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False,
               text=None):
        """SDPA, sparse where it is self-attention of at least min_length tokens.
        text: [begin, end) of tokens that all attend to and that attend to all."""
        def dense():
            return _SDPA(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        length = query.shape[-2]
        is_self = length == key.shape[-2] or text is not None
        if self.config is None or not is_self or length < self.min_length or self.schedule.is_dense and \
                self.schedule.dense_calls:
            return dense()
        why = refusal(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
        if why and self.on_refusal == "dense":
            return dense()
        if why:
            raise NotImplementedError(f"{self.name}: {why} (on_refusal='dense' leaves such calls to torch)")
        settings = {} if text is None else {"dense_keys": (min(text[0], key.shape[-2]), min(text[1], key.shape[-2])),
                                            "dense_rows": tuple(text)}
        if not torch.compiler.is_compiling():
            self.sparse_calls += 1
        if self.statistics is not None and query.dim() == 4:
            return Measurement(self, self.statistics).attend(query, key, value, is_causal, scale, settings)
        return scaled_dot_product_attention(query, key, value, None, 0.0, is_causal, scale, enable_gqa,
                                            config=self.config, **settings)


class _Active(threading.local):
    """The interception that the thread is in; None outside of any."""
    interception = None


_active = _Active()


class Interception:
    """While the thread is in it, SDPA is the layer's attend(). `prepare` changes the
    arguments first. (A TorchFunctionMode would do, were torch.compile able to trace
    Tensor's methods under one.)"""

    def __init__(self, layer, text=None, prepare=None):
        self.layer, self.text, self.prepare, self.outer = layer, text, prepare, None

    def __enter__(self):
        self.outer = _active.interception
        _active.interception = self
        return self

    def __exit__(self, *_):
        _active.interception = self.outer


def _routed_sdpa(*args, **kwargs):
    """What stands for torch.nn.functional.scaled_dot_product_attention while any model
    has its attention replaced."""
    interception = _active.interception
    if interception is None:
        return _SDPA(*args, **kwargs)
    if interception.prepare is not None:
        args, kwargs = interception.prepare(*args, **kwargs)
    return interception.layer.attend(*args, **kwargs, text=interception.text)


_routes = 0
_routes_lock = threading.Lock()


def route_sdpa():
    """Has torch.nn.functional's name lead here, until as many unroute_sdpa()."""
    global _routes
    with _routes_lock:
        _routes += 1
        torch.nn.functional.scaled_dot_product_attention = _routed_sdpa


def unroute_sdpa():
    global _routes
    with _routes_lock:
        _routes -= 1
        if _routes == 0:
            torch.nn.functional.scaled_dot_product_attention = _SDPA


def layer_configs(config, names):
    """For the layers of these names a function (name, index) -> AttentionConfig or None
    from what users give: a config for all, a function, a dict of name patterns
    (fnmatch; the first that matches counts, and layers without one stay dense), or a
    list by index. ValueError for a pattern that no name matches: a misspelt one would
    leave its layers dense."""
    from fnmatch import fnmatchcase
    if config is None:
        config = DEFAULT
    if callable(config):
        return config
    if isinstance(config, dict):
        if not config:
            raise ValueError("config: expected at least one pattern of layers' names, got an empty dict")
        for pattern in config:
            if not any(fnmatchcase(name, pattern) for name in names):
                raise ValueError(f"config: expected patterns of layers' names, got {pattern!r}, which none matches; "
                                 f"the names are {', '.join(names[:3])}{', ...' if len(names) > 3 else ''}")
        return lambda name, _: next((value for pattern, value in config.items() if fnmatchcase(name, pattern)), None)
    if isinstance(config, (list, tuple)):
        if len(config) != len(names):
            raise ValueError(f"config: expected one for each of the {len(names)} attention layers, got a list of "
                             f"{len(config)}")
        return lambda _, index: config[index]
    return lambda *_: config
