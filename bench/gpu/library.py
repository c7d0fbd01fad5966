# SPDX-License-Identifier: Apache-2.0
"""libspargejit through the Python package, on PyTorch's tensors: calls packed once and
repeated, so that what is timed is the library's function and no Python in front of it.
"""
import os
import sys


class Library:
    """The library in `folder`. The package is that of PYTHONPATH, of the folder, or of
    this repository."""

    def __init__(self, folder):
        os.environ["SPARGEJIT_LIBRARY"] = os.path.join(os.path.abspath(folder), "libspargejit.so")
        here = os.path.dirname(os.path.abspath(__file__))
        sys.path += [folder, os.path.join(here, "..", "..", "runtime", "python")]
        import spargejit
        self._package = spargejit

    def version(self):
        return self._package.info()["version"]

    def compile_milliseconds(self):
        return self._package.counters()["compile_milliseconds"]

    def call(self, *arguments, **settings):
        return Call(*arguments, **settings)


class Call:
    """One call, ready to be repeated. Tensors are [batch, heads, length, head_dim]."""

    def __init__(self, q, k, v, o, lists=None, mask_block=(128, 64), causal=False, stream=None, select=None, lse=None,
                 gradients=None, precision="inputs", kept_bytes=0):
        """`lists`: indices and counts; `select`: top_k and top_p; `gradients`: d_o, d_q,
        d_k, d_v, for a backward pass; needs `lse`."""
        import spargejit
        import torch
        from spargejit import frame, shared_library
        settings = {"method": "dense"}
        if lists is not None:
            lists = spargejit.BlockLists(*lists, mask_block, q.shape[2], k.shape[2])
            settings = {"method": "block_sparse"}
        self._tensors = (q, k, v, o, lists, lse, gradients)  # kept alive
        if select is not None:
            settings = {"method": "spargeattention2", "top_k": select[0], "top_p": select[1]}
        self._rounded = None
        self._config = spargejit.AttentionConfig(mask_block=mask_block, causal=causal, precision=precision,
                                                 kept_bytes=kept_bytes, **settings)
        self._frame = packed = frame.Frame(q)
        raw_stream = (stream or torch.cuda.current_stream()).cuda_stream
        output = packed.tensor("o", o)
        inputs = tuple(packed.tensor(name, x) for name, x in (("q", q), ("k", k), ("v", v)))
        config, saved_lse = packed.config(self._config, q, raw_stream, lists), packed.tensor("lse", lse)
        self._arguments = (output, *inputs, config, packed.outputs(saved_lse, 0))
        if gradients is not None:
            d_o, *results = (packed.tensor(name, x) for name, x in zip(("dout", "dq", "dk", "dv"), gradients))
            saved = packed.saved(output, saved_lse, packed.lists("lists", lists))
            self._backward_arguments = (packed.gradients(*results), *inputs, saved, d_o, config, 0)
        self._functions = shared_library.functions()
        self._function, self._backward = self._functions.attention, self._functions.attention_backward

    def prepare(self):
        self._functions.check(self._functions.prepare(*self._arguments[1:]))

    def __call__(self):
        self._functions.check(self._function(*self._arguments))

    def prepare_backward(self):
        self._functions.check(self._functions.prepare_backward(*self._arguments[1:5]))

    def backward(self):
        """Of what the last call of this object left in o and lse."""
        self._functions.check(self._backward(*self._backward_arguments))

    def quantise(self):
        """Rounds q, k and v to eight bits, into the same memory again."""
        import spargejit
        self._rounded = spargejit.quantise(*self._tensors[:3], self._config, out=self._rounded)

    def attend_quantised(self, stream=None):
        """The call with what quantise() has left."""
        import spargejit
        o, lists = self._tensors[3:5]
        spargejit.attention_quantised(self._rounded, self._config, out=o, lists=lists,
                                      stream=stream.cuda_stream if stream else None)

    def select(self):
        """The lists that the call selects: int32 indices and counts on the device."""
        import spargejit
        lists = spargejit.select_blocks(*self._tensors[:2], self._config)
        return lists.indices, lists.counts
