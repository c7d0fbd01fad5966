# SPDX-License-Identifier: Apache-2.0
"""replace_attention(): sparse attention in a model that calls torch's
scaled_dot_product_attention, without a change to the model.
"""
import re

from .layers import Interception, Layer, Schedule, layer_configs, route_sdpa, unroute_sdpa
from .statistics import Statistics

_ATTENTION_CLASS = re.compile(r"attention|attn", re.IGNORECASE)


def default_selection(_, module):
    return _ATTENTION_CLASS.search(type(module).__name__) is not None


class Replacement:
    """What replace_attention() did to a model, and the way back."""

    def __init__(self, model, layers, schedule, statistics):
        self.model, self.layers, self.schedule, self.statistics = model, layers, schedule, statistics
        self._hook = model.register_forward_pre_hook(schedule.count)
        route_sdpa()
        self._undo = [unroute_sdpa]

    def restart(self):
        """The next call of the model is the first of its denoising steps."""
        self.schedule.restart()

    def remove(self):
        """Gives the model its own attention back."""
        self._hook.remove()
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


class _SparseForward:
    """A module's forward() under the layer that came last. An object and no closure, so
    that a deep copy of the model runs the copy's own forward(), with a schedule and
    statistics of its own."""

    def __init__(self, module):
        self.module, self.layers = module, []
        self.own = vars(module).get("forward")  # somebody else's wrapper; None: the class's function

    def __call__(self, *args, **kwargs):
        if not self.layers:  # undone, and still called by a wrapper that came later
            return self.run(*args, **kwargs)
        with Interception(self.layers[-1]):
            return self.run(*args, **kwargs)

    def run(self, *args, **kwargs):
        if self.own is not None:
            return self.own(*args, **kwargs)
        return type(self.module).forward(self.module, *args, **kwargs)


def _wrap_forward(module, layer):
    """Runs module.forward() under an Interception; gives a function that undoes it, in
    whatever order several are undone."""
    forward = module.forward
    if not isinstance(forward, _SparseForward):
        forward = module.forward = _SparseForward(module)
    forward.layers.append(layer)

    def undo():
        forward.layers.remove(layer)
        if forward.layers or vars(module).get("forward") is not forward:
            return
        if forward.own is not None:
            module.forward = forward.own
        else:
            del module.forward
    return undo


def innermost_modules(model, select):
    """(name, module) of what `select` takes and that has nothing such inside."""
    chosen = [(name, module) for name, module in model.named_modules() if select(name, module)]
    names = [name for name, _ in chosen]
    return [(name, module) for name, module in chosen
            if not any(other != name and (other.startswith(name + ".") or name == "") for other in names)]


def replace_attention(model, config=None, *, min_length=1024, select=default_selection, dense_steps=0,
                      calls_per_step=1, statistics=False, on_refusal="raise"):
    """Makes self-attention of at least min_length tokens sparse in `model`: each call
    of torch.nn.functional.scaled_dot_product_attention by a module that `select` takes
    (name, module; default: classes with "attention" or "attn" in their names), where
    there are as many queries as keys. Cross attention and short sequences stay. So do
    calls by an alias of the function that was imported before: the `sparse_calls` of
    each of the result's `layers` tell.

    config: an AttentionConfig for all layers, a list by layer, a dict of name patterns,
    or a function (name, index); None for a layer leaves it dense.
    dense_steps: the first denoising steps stay dense; a step is calls_per_step calls of
    the model (2 with classifier-free guidance in two calls). restart() of the result
    begins another video.
    statistics: True collects density, recall and time in its `statistics`.
    on_refusal: what a call that sparse attention cannot be (a mask, dropout) does:
    "raise", or "dense".

    Gives a Replacement; its remove() undoes it. ValueError where `select` takes nothing.
    Of several for one module the last counts, until it is removed.
    """
    modules = innermost_modules(model, select)
    if not modules:
        raise ValueError("select: expected at least one attention module in the model, got none; give a function "
                         "(name, module) -> bool that says which they are")
    config_for = layer_configs(config, [name for name, _ in modules])
    schedule = Schedule(dense_steps, calls_per_step)
    figures = Statistics() if statistics else None
    layers = [Layer(name, config_for(name, index), schedule, min_length, on_refusal, figures)
              for index, (name, _) in enumerate(modules)]
    replacement = Replacement(model, layers, schedule, figures)
    for (_, module), layer in zip(modules, layers):
        replacement._undo.append(_wrap_forward(module, layer))
    return replacement
