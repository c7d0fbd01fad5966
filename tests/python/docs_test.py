# SPDX-License-Identifier: Apache-2.0
"""Each ```python block of README.md and docs/python.md runs as a program; those that
say ```python torch are left out, by name, where PyTorch is not installed.
"""
import importlib.util
import os
import re
import subprocess
import sys
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = ("README.md", "docs/python.md")
BLOCK = re.compile(r"^```python( torch)?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def programs(page):
    with open(os.path.join(TOP, page), encoding="utf-8") as file:
        text = file.read()
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield f"{page}:{line}", match.group(1) is not None, match.group(2)


class DocsTest(unittest.TestCase):
    def test_programs(self):
        has_torch = importlib.util.find_spec("torch") is not None
        ran = 0
        for page in PAGES:
            found = list(programs(page))
            self.assertTrue(found, f"{page} has no program")
            for place, needs_torch, program in found:
                if needs_torch and not has_torch:
                    print(f"{place}: left out: PyTorch is not installed")
                    continue
                with self.subTest(place):
                    result = subprocess.run([sys.executable, "-c", program], text=True, stdout=subprocess.PIPE,
                                            stderr=subprocess.STDOUT, check=False)
                    self.assertEqual(result.returncode, 0, f"{place}:\n{result.stdout}")
                    print(f"{place} prints: {result.stdout.strip()}")
                    ran += 1
        self.assertGreater(ran, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
