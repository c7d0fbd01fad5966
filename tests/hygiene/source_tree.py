# SPDX-License-Identifier: Apache-2.0
"""What every check of this folder needs: the files of the repository, and how
to report. A check is a module with `find_problems(root) -> list of str`; its
self-test builds small trees with the defect in them.
"""
import argparse
import os
import subprocess
import sys


def list_files(root):
    """Paths below `root`, sorted, with '/': in a git work tree the tracked and
    the not yet added ones, elsewhere (an unpacked archive, a self-test's tree)
    all but build folders."""
    if os.path.exists(os.path.join(root, ".git")):
        output = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others",
             "--exclude-standard"],
            cwd=root, check=True, capture_output=True, text=True).stdout
        names = [name for name in output.split("\0") if name]
    else:
        names = []
        for folder, folders, files in os.walk(root):
            at_top = os.path.samefile(folder, root)
            folders[:] = [f for f in folders
                          if f != "__pycache__" and not (at_top and f.startswith("build"))]
            names += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return sorted(name for name in set(names) if os.path.isfile(os.path.join(root, name)))


def read_text(root, path):
    """The file's text, or None for one that is not text."""
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:
        return None


def run_check(description, find_problems):
    """The main function of every check: exit 0 when nothing is found, else 1."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("root", help="top of the repository")
    problems = find_problems(parser.parse_args().root)
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems", file=sys.stderr)
    sys.exit(1 if problems else 0)
