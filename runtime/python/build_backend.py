#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel: the package, and libspargejit.so beside it. A wheel is a zip file
(PyPA, binary distribution format), and nothing here is compiled for a version of
Python, so that this file is all it takes; `pip install` of this folder calls it too
(PEP 517) and has CMake build the library where no finished build is found.

    build_backend.py [--library FILE] -o FOLDER
"""
import argparse
import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
NAME = "spargejit"
# Of every file in the zip: the same input gives the same bytes.
TIME = (2000, 1, 1, 0, 0, 0)


def read_version():
    with open(os.path.join(HERE, NAME, "shared_library.py"), encoding="utf-8") as file:
        return re.search(r'^__version__ = "([^"]+)"', file.read(), re.MULTILINE).group(1)


def find_library():
    """SPARGEJIT_LIBRARY, or that of the build folder, which is built where it lacks."""
    named = os.environ.get("SPARGEJIT_LIBRARY")
    library = named or os.path.join(TOP, "build", "lib", "libspargejit.so")
    if not os.path.exists(library):
        if named:
            raise FileNotFoundError(f"SPARGEJIT_LIBRARY: expected a file, got {named}")
        build = os.path.join(TOP, "build")
        configured = os.path.exists(os.path.join(build, "CMakeCache.txt"))
        if not configured:
            subprocess.run(["cmake", "-S", TOP, "-B", build, "-DCMAKE_BUILD_TYPE=Release",
                            "-DSPARGEJIT_BUILD_TESTS=OFF", "-DSPARGEJIT_BUILD_BENCH=OFF"], check=True)
        subprocess.run(["cmake", "--build", build, "--target", "spargejit_library", "--parallel"], check=True)
    return library


def platform_tag(library):
    """The tag of the oldest glibc that has every symbol version which the library
    asks for (PEP 600)."""
    with open(library, "rb") as file:
        content = file.read()
    versions = [int(minor) for minor in re.findall(rb"\0GLIBC_2\.(\d+)(?=[.\0])", content)]
    machine = {62: "x86_64", 183: "aarch64"}[int.from_bytes(content[18:20], "little")]  # e_machine of ELF
    return f"manylinux_2_{max(versions)}_{machine}"


def metadata():
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    return ("Metadata-Version: 2.1\nName: spargejit\n"
            f"Version: {read_version()}\nSummary: JIT-compiled block-sparse attention\nLicense: Apache-2.0\n"
            "Requires-Python: >=3.9\nProvides-Extra: torch\nRequires-Dist: torch>=2.6; extra == 'torch'\n"
            f"Description-Content-Type: text/markdown\n\n{readme}")


def package_files():
    for folder, folders, files in os.walk(os.path.join(HERE, NAME)):
        folders.sort()
        for name in sorted(files):
            if name.endswith(".py"):
                yield os.path.join(folder, name)


def make_wheel(folder, library):
    """Writes the wheel and gives its name."""
    version, tag = read_version(), f"py3-none-{platform_tag(library)}"
    info, name = f"{NAME}-{version}.dist-info", f"{NAME}-{version}-{tag}.whl"
    records = []
    os.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, name + ".part")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(path, content):
            entry = zipfile.ZipInfo(path, TIME)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            wheel.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            records.append(f"{path},sha256={digest},{len(content)}\n")

        def add_file(path, source):
            with open(source, "rb") as file:
                add(path, file.read())
        for source in package_files():
            add_file(os.path.relpath(source, HERE), source)
        add_file(f"{NAME}/libspargejit.so", library)
        add_file(f"{info}/licenses/LICENSE", os.path.join(TOP, "LICENSE"))
        add(f"{info}/METADATA", metadata().encode())
        add(f"{info}/WHEEL", ("Wheel-Version: 1.0\nGenerator: spargejit\nRoot-Is-Purelib: false\n"
                              f"Tag: {tag}\n").encode())
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD", TIME), "".join(records) + f"{info}/RECORD,,\n")
    os.replace(temporary, os.path.join(folder, name))
    return name


# PEP 517.
def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return make_wheel(wheel_directory, find_library())


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("a source distribution of this folder alone could build nothing: take the repository")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", dest="shared_library",
                        help="a finished libspargejit.so (default: that of the build folder)")
    parser.add_argument("-o", "--output", required=True, help="folder for the wheel")
    args = parser.parse_args()
    print(os.path.join(args.output, make_wheel(args.output, args.shared_library or find_library())))


if __name__ == "__main__":
    sys.exit(main())
