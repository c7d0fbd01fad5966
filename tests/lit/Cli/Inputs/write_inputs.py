# SPDX-License-Identifier: Apache-2.0
"""write_inputs.py FOLDER: the same random q, k, v (2 heads, 150 tokens, head
dimension 16) in every form that `spargejit run` reads, and broken files."""
import json
import os
import random
import struct
import sys

HEADS, LENGTH, DIM = 2, 150, 16
folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
seed = random.SystemRandom().randrange(2**32)
print("seed", seed, file=sys.stderr)
draw = random.Random(seed)

# Multiples of 1/64 below 4 are exact in float32, float16 and (8 bits) bfloat16
# when they have at most 8 significant bits.
VALUES = [i / 64 for i in range(-255, 256)]
tensors = {name: [[[draw.choice(VALUES) for _ in range(DIM)] for _ in range(LENGTH)]
                  for _ in range(HEADS)] for name in "qkv"}


def flat_bhnd(tensor):
    return [x for head in tensor for row in head for x in row]


def flat_bnhd(tensor):
    return [x for n in range(LENGTH) for head in tensor for x in head[n]]


def encode(values, dtype):
    if dtype == "F32":
        return struct.pack(f"<{len(values)}f", *values)
    if dtype == "F16":
        return struct.pack(f"<{len(values)}e", *values)
    # bfloat16 is the upper half of a float32; these values lose nothing.
    return b"".join(struct.pack("<f", value)[2:] for value in values)


def write(name, data):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)


def safetensors(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor_file(shape, flatten, dtype="F32", names="qkv"):
    header, data = {}, b""
    for name in names:
        bytes_ = encode(flatten(tensors[name]), dtype)
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    return header, data


def npy(shape, data, descr):
    header = str({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    header += " " * (64 - (10 + len(header) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


RANK4 = [1, HEADS, LENGTH, DIM]
for dtype in ("F32", "F16", "BF16"):
    write(f"{dtype.lower()}.safetensors", safetensors(*tensor_file(RANK4, flat_bhnd, dtype)))
write("rank3.safetensors", safetensors(*tensor_file(RANK4[1:], flat_bhnd)))
write("bnhd.safetensors", safetensors(*tensor_file([1, LENGTH, HEADS, DIM], flat_bnhd)))
write("bnhd3.safetensors", safetensors(*tensor_file([LENGTH, HEADS, DIM], flat_bnhd)))
# Rank 2: the first head alone.
write("rank2.safetensors", safetensors(*tensor_file([LENGTH, DIM], lambda t: flat_bhnd(t[:1]))))
write("head0.safetensors",
      safetensors(*tensor_file([1, 1, LENGTH, DIM], lambda t: flat_bhnd(t[:1]))))
for name in "qkv":
    write(f"{name}.npy", npy(RANK4, encode(flat_bhnd(tensors[name]), "F32"), "<f4"))
    write(f"{name}16.npy", npy(RANK4, encode(flat_bhnd(tensors[name]), "F16"), "<f2"))
write("all.npy", npy([2, 3], b"\1" * 6, "|b1"))
write("none.npy", npy([1, 1, 2, 3], b"\0" * 6, "|b1"))

# Broken files.
header, data = tensor_file(RANK4, flat_bhnd)
whole = safetensors(header, data)
write("truncated.safetensors", whole[:-10])
write("empty.safetensors", b"")
write("long_header.safetensors", struct.pack("<Q", 2**63) + whole[8:])
write("no_v.safetensors", safetensors(*tensor_file(RANK4, flat_bhnd, names="qk")))
write("nan_shape.safetensors",
      safetensors(json.dumps(header).replace(str(LENGTH), "NaN").encode(), data))
write("deep.safetensors", safetensors(b'{"q":' + b"[" * 300000 + b"]" * 300000 + b"}", b""))
wrong = {name: dict(entry) for name, entry in header.items()}
wrong["k"]["dtype"] = "I32"
write("wrong_dtype.safetensors", safetensors(wrong, data))
wrong = {name: dict(entry) for name, entry in header.items()}
wrong["k"]["data_offsets"] = wrong["q"]["data_offsets"]
write("overlap.safetensors", safetensors(wrong, data))
wrong = {name: dict(entry) for name, entry in header.items()}
wrong["k"]["shape"] = [1, HEADS, LENGTH // 2, 2 * DIM]
write("shapes_differ.safetensors", safetensors(wrong, data))
array = npy(RANK4, encode(flat_bhnd(tensors["q"]), "F32"), "<f4")
write("truncated.npy", array[:-1])
write("big_endian.npy", array.replace(b"<f4", b">f4"))
write("fortran.npy", array.replace(b"False", b"True "))
