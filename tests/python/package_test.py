# SPDX-License-Identifier: Apache-2.0
"""What importing costs and needs, and the wheel: made, unpacked as pip does, and
used without anything of this tree.
"""
import ast
import base64
import csv
import glob
import hashlib
import importlib.util
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIBRARY = os.environ["SPARGEJIT_LIBRARY"]


def run_python(code, environment=None, folder=None):
    """(exit status, output) of a program."""
    result = subprocess.run([sys.executable, "-c", code], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            check=False, env={**os.environ, **(environment or {})}, cwd=folder)
    return result.returncode, result.stdout


def imported_names(path):
    """(module, name) of what a program imports from the package; spargejit.torch,
    which needs PyTorch, has tests of its own."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and re.match(r"spargejit(?!\.torch)(\.|$)", node.module or ""):
            yield from ((node.module, alias.name) for alias in node.names if alias.name != "torch")


class ImportTest(unittest.TestCase):
    def test_programs_import_what_exists(self):
        """Those that need a GPU too, which this machine may not have."""
        import importlib
        found = 0
        for folder in ("bench", "examples", "tests"):
            for path in glob.glob(os.path.join(TOP, folder, "**", "*.py"), recursive=True):
                for module, name in imported_names(path):
                    with self.subTest(path=path, module=module, name=name):
                        found += 1
                        if not hasattr(importlib.import_module(module), name):
                            importlib.import_module(f"{module}.{name}")
        self.assertGreater(found, 4)

    def test_takes_under_100_ms(self):
        # Of processor time, since tests run side by side; with its bytecode, as
        # installed packages have it.
        code = ("import time; begin = time.process_time(); import spargejit; "
                "print(1000 * (time.process_time() - begin))")
        with tempfile.TemporaryDirectory() as folder:
            times = [float(run_python(code, {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""})[1])
                     for _ in range(4)]
        print(f"import: {min(times[1:]):.1f} ms")
        self.assertLess(min(times[1:]), 100)

    def test_needs_neither_library_nor_frameworks(self):
        code = ("import sys, spargejit; assert not {'numpy', 'torch', 'json', 'dataclasses'} & set(sys.modules)\n"
                "try: spargejit.info()\n"
                "except ImportError as error: print(error)")
        status, output = run_python(code, {"SPARGEJIT_LIBRARY": "/nowhere/libspargejit.so"})
        self.assertEqual(status, 0, output)
        self.assertIn("SPARGEJIT_LIBRARY", output)

    def test_refuses_another_library(self):
        code = ("import spargejit.shared_library as library\nlibrary.ABI_VERSION = 2\n"
                "try: library.functions()\nexcept ImportError as error: print(error)")
        self.assertIn("expected version 2 of the binary interface, got 1", run_python(code)[1])
        import _ctypes  # a shared library of something else
        code = "import spargejit\ntry: spargejit.info()\nexcept ImportError as error: print(error)"
        self.assertIn("expected spargejit's library", run_python(code, {"SPARGEJIT_LIBRARY": _ctypes.__file__})[1])


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        spec = importlib.util.spec_from_file_location(
            "build_backend", os.path.join(TOP, "runtime", "python", "build_backend.py"))
        backend = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(backend)
        cls.name = backend.build_wheel(cls.folder.name)
        cls.path = os.path.join(cls.folder.name, cls.name)
        print(f"{cls.name}: {os.path.getsize(cls.path)} bytes")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_name_and_tag(self):
        self.assertRegex(self.name, r"^spargejit-\d+\.\d+\.\d+-py3-none-manylinux_2_(1[7-9]|2\d|3\d)_x86_64\.whl$")

    def test_version_is_the_library_s(self):
        with open(os.path.join(TOP, "CMakeLists.txt"), encoding="utf-8") as file:
            version = re.search(r"project\(spargejit VERSION ([\d.]+)", file.read()).group(1)
        self.assertTrue(self.name.startswith(f"spargejit-{version}-"), self.name)

    def test_record_lists_every_file_with_its_digest(self):
        with zipfile.ZipFile(self.path) as wheel:
            info = next(name for name in wheel.namelist() if name.endswith("/RECORD"))
            records = {row[0]: row[1:] for row in csv.reader(io.StringIO(wheel.read(info).decode()))}
            self.assertEqual(set(records), set(wheel.namelist()))
            for name, (digest, size) in records.items():
                if name == info:
                    continue
                content = wheel.read(name)
                right = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, int(size)), (f"sha256={right}", len(content)), name)
            metadata = wheel.read(info.replace("RECORD", "METADATA")).decode()
        self.assertIn("Name: spargejit\n", metadata)

    def test_works_where_nothing_else_is(self):
        with tempfile.TemporaryDirectory() as site:
            with zipfile.ZipFile(self.path) as wheel:
                wheel.extractall(site)
            code = ("import numpy, spargejit; assert spargejit.__file__.startswith(%r)\n"
                    "x = numpy.ones((1, 1, 200, 16), numpy.float32)\n"
                    "o = spargejit.attention(x, x, x)\nassert abs(o - 1).max() < 1e-6\n"
                    "assert spargejit.info()['library'].startswith(%r)" % (site, site))
            environment = {name: value for name, value in os.environ.items()
                           if name not in ("SPARGEJIT_LIBRARY", "PYTHONPATH")}
            result = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=False, cwd=site,
                                    env={**environment, "PYTHONPATH": site})
            self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
