# SPDX-License-Identifier: Apache-2.0
"""The rules of selection that are compared, all at the same density, and what is
measured of attention inside the model.
"""
import spargejit
import spargejit.torch as sparse
import torch
from torch.nn import functional as F


def dense(q, k, v, _):
    return F.scaled_dot_product_attention(q, k, v)


def sparsely(config):
    return lambda q, k, v, _: sparse.attention(q, k, v, config)


class Probe:
    """Runs the model densely and keeps what each of its blocks attends with."""

    def __init__(self, model):
        self.model, self.inputs = model, []

    def __enter__(self):
        self.before = self.model.attend

        def attend(q, k, v, index):
            self.inputs.append((q, k, v))
            return dense(q, k, v, index)
        self.model.attend = attend
        return self

    def __exit__(self, *_):
        self.model.attend = self.before


def density_of(config, inputs):
    return sum(sparse.select_blocks(q, k, config).density() for q, k, _ in inputs) / len(inputs)


def attention_error(config, inputs):
    """Mean over blocks of the relative L2 of sparse attention's output."""
    errors = []
    for q, k, v in inputs:
        right = dense(q, k, v, 0).float()
        errors.append(float((sparse.attention(q, k, v, config).float() - right).norm() / right.norm()))
    return sum(errors) / len(errors)


def calibrated(config, inputs, density):
    """The config with the top_p that has this density on the inputs, by bisection; as
    it is where its top_k alone has more."""
    low, high = 0.0, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        if density_of(config.replaced(top_p=middle), inputs) > density:
            high = middle
        else:
            low = middle
    return config.replaced(top_p=low)


# The part of the hybrid rule's density that goes by rank. The paper has 3 of 5
# hundredths; how much a row gains from mass beside rank depends on how widely the model
# attends.
HYBRID_SHARES = (0.6, 0.8, 0.95)


def hybrid_config(base, inputs, density):
    """Of the hybrid rules with this density, the one whose attention is closest to
    dense attention."""
    candidates = [calibrated(base.replaced(method="spargeattention2", top_k=share * density), inputs, density)
                  for share in HYBRID_SHARES]
    return min(candidates, key=lambda config: attention_error(config, inputs))


@torch.no_grad()
def make_configs(model, noisy, times, density, mask_block):
    """{name: config} of the three rules at one density, and the inputs that they were
    calibrated on."""
    with Probe(model) as probe:
        model(noisy, times)
    base = spargejit.AttentionConfig(mask_block=mask_block)
    return {
        "hybrid": hybrid_config(base, probe.inputs, density),
        "top-k": base.replaced(method="topk", top_k=density),
        "top-p": calibrated(base.replaced(method="topp"), probe.inputs, density),
    }, probe.inputs
