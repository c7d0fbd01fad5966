# SPDX-License-Identifier: Apache-2.0
"""flip_byte.py FOLDER NAME: changes one byte of each file NAME below FOLDER."""
import os
import sys

for folder, _, names in os.walk(sys.argv[1]):
    if sys.argv[2] in names:
        with open(os.path.join(folder, sys.argv[2]), "r+b") as file:
            byte = file.read(200)[-1]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))
