# SPDX-License-Identifier: Apache-2.0
"""README.md is true: each line of its ```sh blocks is run (or, where it would
build or test all over again, looked up in `./run help`), and its ```cpp blocks
are built with its ```cmake block against the installed library and run; so are
those of PROGRAM_PAGES.
"""
import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile

from source_tree import read_text

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Pages whose ```cpp blocks are programs too.
PROGRAM_PAGES = ("docs/training.md", "docs/eight_bits.md")
# What a reader types before the first command of the repository.
NOT_RUN = ("git", "cd")


class Readme:
    """The README's blocks, programs of further pages, and where to try them."""

    def __init__(self, root, build, pages=()):
        self.root = os.path.abspath(root)
        self.build = os.path.abspath(build)
        self.blocks = BLOCK.findall(read_text(self.root, "README.md"))
        for page in pages:
            self.blocks += [block for block in BLOCK.findall(read_text(self.root, page)) if block[0] == "cpp"]

    def of_language(self, language):
        return [text for kind, text in self.blocks if kind == language]


def run(command, folder):
    """(exit status, output) of a command given as a list."""
    try:
        result = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, check=False, timeout=600)
    except FileNotFoundError as error:
        return 127, str(error)
    return result.returncode, result.stdout


def check_repository_command(words, help_text):
    """A `./run` line: its command and its options must be in the help."""
    if len(words) < 2 or not re.search(rf"^  {re.escape(words[1])} ", help_text, re.MULTILINE):
        yield f"'{' '.join(words)}': no such command in ./run help"
    for option in words[2:]:
        if option.startswith("-") and not re.search(rf"^  {re.escape(option)}\b", help_text, re.MULTILINE):
            yield f"'{' '.join(words)}': no option {option} in ./run help"


def check_shell_blocks(readme, folder):
    _, help_text = run(["./run", "help"], readme.root)
    for block in readme.of_language("sh"):
        for line in block.replace("\\\n", " ").split("\n"):
            words = shlex.split(line, comments=True)
            if not words or words[0] in NOT_RUN:
                continue
            if words[0] == "./run":
                yield from check_repository_command(words, help_text)
                continue
            command = [re.sub(r"^build(?=/|$)", readme.build, word) for word in words]
            status, output = run(command, folder)
            if status != 0:
                yield f"'{line}': exit status {status}: {output.strip()}"


def check_programs(readme, folder):
    programs, projects = readme.of_language("cpp"), readme.of_language("cmake")
    if not programs or len(projects) != 1:
        yield f"expected a cpp block and one cmake block, got {len(programs)} and {len(projects)}"
        return
    prefix = os.path.join(folder, "prefix")
    status, output = run(["cmake", "--install", readme.build, "--prefix", prefix], folder)
    if status != 0:
        yield f"installing failed: {output.strip()}"
        return
    for number, program in enumerate(programs, 1):
        project = os.path.join(folder, f"program{number}")
        os.makedirs(project)
        source = re.search(r"\b(\w+)\.cpp\b", projects[0]).group()
        for name, text in (("CMakeLists.txt", projects[0]), (source, program)):
            with open(os.path.join(project, name), "w", encoding="utf-8") as file:
                file.write(text)
        target = re.search(r"add_executable\((\w+)", projects[0]).group(1)
        for command in (["cmake", "-S", ".", "-B", "out", "-G", "Ninja",
                         f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release"],
                        ["cmake", "--build", "out"], [f"./out/{target}"]):
            status, output = run(command, project)
            if status != 0:
                yield f"program {number}: '{' '.join(command)}': exit status {status}: {output.strip()}"
                return
        print(f"program {number} prints: {output.strip()}")


def find_problems(root, build):
    readme = Readme(root, build, PROGRAM_PAGES)
    with tempfile.TemporaryDirectory() as folder:
        return [f"README.md: {problem}" for check in (check_shell_blocks, check_programs)
                for problem in check(readme, folder)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", help="top of the repository")
    parser.add_argument("build", help="a build folder")
    arguments = parser.parse_args()
    found = find_problems(arguments.root, arguments.build)
    print("\n".join(found))
    sys.exit(1 if found else 0)
