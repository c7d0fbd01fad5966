# SPDX-License-Identifier: Apache-2.0
"""Every pass, every op, type and attribute, and every numbered constraint of the
dialects has a lit test: a pass where its flag stands in a file of tests/lit/,
an op where a file other than `*_invalid.mlir` uses it, constraint C3 of op `pool` where a test
is named `pool_c3` or `pool_c3_<what is wrong>`.
"""
import re

from source_tree import list_files, read_text, run_check

PASS = re.compile(r'^def\s+\w+\s*:\s*(?:Interface)?Pass<\s*"([\w-]+)"', re.MULTILINE)
DEFINITION = re.compile(r"^def\s+(\w+)\s*:\s*(.*?)(?=^def\s|^class\s|\Z)", re.MULTILINE | re.DOTALL)
OP = re.compile(r'\w*_Op<\s*"([\w.]+)"')
TYPE_OR_ATTRIBUTE = re.compile(r'\w*_(?:Type|Attr)<\s*"\w+"\s*,\s*"([\w.]+)"')
DIALECT = re.compile(r'let\s+name\s*=\s*"(\w+)"')
CONSTRAINT = re.compile(r"^\s*(?:[-*]\s*)?\**C(\d+)\**\s*:", re.MULTILINE)


def is_named(name, text):
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def check_passes(path, text, lit_texts):
    for flag in PASS.findall(text):
        pattern = re.compile(rf"(?<![\w-])-{{0,2}}{re.escape(flag)}(?![\w-])")
        if not any(pattern.search(lit) for lit in lit_texts.values()):
            yield f"{path}: pass {flag} is in no file of tests/lit/"


def check_definitions(path, text, dialect, lit_texts):
    for name, body in DEFINITION.findall(text):
        mnemonic = OP.match(body) or TYPE_OR_ATTRIBUTE.match(body)
        if not mnemonic:
            continue
        word = mnemonic.group(1)
        if not any(is_named(f"{dialect}.{word}", lit) for lit_path, lit in lit_texts.items()
                          if not lit_path.endswith("_invalid.mlir")):
            yield f"{path}: {dialect}.{word} is used in no file of tests/lit/ but negative ones"
        for number in CONSTRAINT.findall(body):
            test = re.compile(rf"(?<![a-z0-9]){re.escape(word)}_c{number}(?![0-9a-z])")
            if not any(test.search(lit) for lit in lit_texts.values()):
                yield f"{path}: constraint C{number} of {name} has no test {word}_c{number}_... in tests/lit/"


def find_problems(root):
    files = list_files(root)
    lit_texts = {path: read_text(root, path) or "" for path in files
                 if path.startswith("tests/lit/") and path.endswith((".mlir", ".td", ".test", ".ll"))}
    definitions = {path: read_text(root, path) or "" for path in files
                   if path.startswith("compiler/") and path.endswith(".td")}
    dialects = {path.rsplit("/", 1)[0]: DIALECT.search(text).group(1)
                for path, text in definitions.items() if DIALECT.search(text)
                and re.search(r"^def\s+\w+\s*:\s*Dialect\b", text, re.MULTILINE)}
    problems = []
    for path, text in definitions.items():
        problems += check_passes(path, text, lit_texts)
        dialect = dialects.get(path.rsplit("/", 1)[0])
        if dialect:
            problems += check_definitions(path, text, dialect, lit_texts)
    return problems


if __name__ == "__main__":
    run_check(__doc__, find_problems)
