# SPDX-License-Identifier: Apache-2.0
"""AttentionConfig: everything about a call that is no tensor."""
import ctypes
import operator
import struct

# SpargejitConfig of spargejit/c.h.
_LAYOUT = struct.Struct("@NPPPdddPPPP2q2qqqiiiiiiq")
CONFIG_SIZE = _LAYOUT.size
_BYTES = struct.Struct(f"{CONFIG_SIZE}s")
_STREAM, _STREAM_OFFSET = struct.Struct("@P"), 8
_POINTERS, _POINTERS_OFFSET = struct.Struct("@PPPP"), 56


# In the order of c.h's values.
PRECISIONS = ("inputs", "fp8_exact", "fp8_balanced", "fp8_fast")


class AttentionConfig:
    """Settings of a call; never changed once made. Each means what the field of that name means in
    spargejit/attention.h; what is out of range is refused by the call.

    method: "spargeattention2", "topk", "topp", "dense", "block_sparse", or the path
    of a method file (ends in ".mlir").
    top_k: share of key blocks kept by rank, from 0 to 1 (0.03). top_p: probability
    mass kept, from 0 to 1 (0.2).
    mask_block: query rows (64 or 128) and keys (16, 32, 64 or 128) of one block of
    the mask; (128, 64).
    causal: query i sees keys j <= i + kv_len - q_len (False).
    scale: factor on q·k; None for 1/sqrt(head_dim).
    dense_keys, dense_rows: [begin, end) of tokens that all attend to, and that
    attend to all.
    custom_source: CUDA C++ of a method's own stages.
    validate_lists: check given lists before they are used.
    precision: in what attention computes: "inputs", or eight bits of 16-bit tensors,
    "fp8_exact", "fp8_balanced" or "fp8_fast" (docs/eight_bits.md); these have no
    gradients.
    kept_bytes: of a backward pass's workspace on a GPU in which gradients of scores may
    be kept from one kernel for another (0); spargejit/attention.h says what that gains.
    threads: CPU threads; 0 for all. tune: "off" or "first_use".
    """
    # dataclasses would take half of the package's import time.
    FIELDS = {"method": "spargeattention2", "top_k": 0.03, "top_p": 0.2, "mask_block": (128, 64), "causal": False,
              "scale": None, "dense_keys": (0, 0), "dense_rows": (0, 0), "custom_source": "",
              "validate_lists": False, "threads": 0, "tune": "off", "precision": "inputs", "kept_bytes": 0}

    def __init__(self, **settings):
        for name in settings:
            if name not in self.FIELDS:
                raise TypeError(f"expected settings among {', '.join(self.FIELDS)}, got {name}")
        self.__dict__.update(self.FIELDS)
        self.__dict__.update(settings)
        for name in ("mask_block", "dense_keys", "dense_rows"):
            value = getattr(self, name)
            try:
                first, second = map(operator.index, value)
            except (TypeError, ValueError):
                raise ValueError(f"{name}: expected two integers, got {value!r}") from None
            self.__dict__[name] = first, second
        for name in ("method", "custom_source"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name}: expected a str, got {getattr(self, name)!r}")
            if "\0" in getattr(self, name):
                raise ValueError(f"{name}: expected a str without NUL, got {getattr(self, name)!r}")
        if self.tune not in ("off", "first_use"):
            raise ValueError(f"tune: expected 'off' or 'first_use', got {self.tune!r}")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision: expected one of {', '.join(PRECISIONS)}, got {self.precision!r}")

    def __setattr__(self, name, value):
        raise AttributeError(f"{name}: a config is never changed; replaced({name}=...) makes another")

    def settings(self):
        """The fields as a dict."""
        return {name: getattr(self, name) for name in self.FIELDS}

    def replaced(self, **settings):
        """This config with other settings."""
        return AttentionConfig(**{**self.settings(), **settings}) if settings else self

    def __eq__(self, other):
        return isinstance(other, AttentionConfig) and self.settings() == other.settings()

    def __hash__(self):
        return hash(tuple(self.settings().values()))

    def __repr__(self):
        changed = [f"{name}={value!r}" for name, value in self.settings().items() if value != self.FIELDS[name]]
        return f"AttentionConfig({', '.join(changed)})"

    def __reduce__(self):
        return _config_from, (self.settings(),)

    def pack_into(self, buffer, offset, stream, by_head=(0, 0), mask=0, lists=0):
        """Writes SpargejitConfig. `by_head`: addresses of top_k and top_p by head;
        `mask`, `lists`: addresses; 0 for none."""
        packed = self.__dict__.get("_packed")
        if packed is None:
            packed = self.__dict__["_packed"] = self._pack()
        _BYTES.pack_into(buffer, offset, packed)
        _STREAM.pack_into(buffer, offset + _STREAM_OFFSET, stream)
        if mask or lists or by_head != (0, 0):
            _POINTERS.pack_into(buffer, offset + _POINTERS_OFFSET, *by_head, mask, lists)

    def _pack(self):
        """The struct without what differs from call to call."""
        texts = tuple(ctypes.c_char_p(self._bytes(name)) for name in ("method", "custom_source"))
        self.__dict__["_texts"] = texts  # their memory lives as long as this
        addresses = [ctypes.cast(text, ctypes.c_void_p).value for text in texts]
        has_scale = self.scale is not None
        numbers = [self._number(name, float, "a number") for name in ("top_k", "top_p")]
        numbers.append(self._number("scale", float, "a number or None") if has_scale else 0.0)
        flags = [self._number(name, int, "a bool") for name in ("causal", "validate_lists")]
        threads, kept = self._integer("threads", 32), self._integer("kept_bytes", 64)
        pairs = [number for name in ("dense_keys", "dense_rows", "mask_block") for number in self._pair(name)]
        return _LAYOUT.pack(
            CONFIG_SIZE, 0, *addresses, *numbers, 0, 0, 0, 0, *pairs, int(has_scale), *flags, threads,
            int(self.tune == "first_use"), PRECISIONS.index(self.precision), kept)

    def _bytes(self, name):
        """A file's name may hold bytes that are no UTF-8 (os.fsdecode)."""
        try:
            return getattr(self, name).encode(errors="surrogateescape")
        except UnicodeEncodeError:
            raise ValueError(f"{name}: expected text that UTF-8 can hold, got {getattr(self, name)!r}") from None

    def _number(self, name, kind, expected):
        value = getattr(self, name)
        try:
            return kind(value)
        except (TypeError, ValueError):
            raise TypeError(f"{name}: expected {expected}, got {value!r}") from None
        except OverflowError:
            raise ValueError(f"{name}: expected {expected}, got {value!r}, which is too large") from None

    def _integer(self, name, bits):
        value = self._number(name, operator.index, "an integer")
        if not -1 << bits - 1 <= value < 1 << bits - 1:
            raise ValueError(f"{name}: expected an integer of {bits} bits, got {value}")
        return value

    def _pair(self, name):
        pair = getattr(self, name)
        if not all(-1 << 63 <= value < 1 << 63 for value in pair):
            raise ValueError(f"{name}: expected two integers of 64 bits, got {pair}")
        return pair


def _config_from(settings):
    return AttentionConfig(**settings)


DEFAULT = AttentionConfig()


def config_of(config, settings):
    """The config of a call: given, by keyword settings, or both."""
    if config is None:
        return AttentionConfig(**settings) if settings else DEFAULT
    if not isinstance(config, AttentionConfig):
        raise TypeError(f"config: expected an AttentionConfig, got {type(config).__name__}")
    return config.replaced(**settings)
