# SPDX-License-Identifier: Apache-2.0
"""same_output.py A B: the tensors `o` of two .safetensors files hold the same
numbers, bit by bit; B may be [.., length, heads, dim] (--bnhd) and float16 or
bfloat16 (then A's float32 numbers need only be near)."""
import json
import struct
import sys

bnhd = "--bnhd" in sys.argv
paths = [argument for argument in sys.argv[1:] if not argument.startswith("--")]


def read(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        begin, end = header["o"]["data_offsets"]
        file.seek(8 + length + begin)
        data = file.read(end - begin)
    dtype, shape = header["o"]["dtype"], header["o"]["shape"]
    if dtype == "F32":
        values = list(struct.unpack(f"<{len(data) // 4}f", data))
    elif dtype == "F16":
        values = list(struct.unpack(f"<{len(data) // 2}e", data))
    else:
        values = [struct.unpack("<f", b"\0\0" + data[i:i + 2])[0]
                  for i in range(0, len(data), 2)]
    return dtype, shape, values


(_, shape_a, a), (dtype_b, shape_b, b) = map(read, paths)
if bnhd:
    length, heads, dim = shape_b[-3:]
    b = [b[(n * heads + h) * dim + d]
         for h in range(heads) for n in range(length) for d in range(dim)]
if len(a) != len(b):
    sys.exit(f"shapes {shape_a} and {shape_b}")
# Values are below 4; 2^-6 is a rounding step of bfloat16 there.
allowed = 0 if dtype_b == "F32" else 2**-6
worst = max(abs(x - y) for x, y in zip(a, b))
if not worst <= allowed:
    sys.exit(f"largest difference {worst}, allowed {allowed}")
print(f"same: {len(a)} numbers, shape {shape_b}, {dtype_b}")
