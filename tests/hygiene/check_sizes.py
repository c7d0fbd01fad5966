# SPDX-License-Identifier: Apache-2.0
"""Files, functions and folders stay small enough to be read: nothing longer
than the length at which it is to be split.
"""
import os
import re
from collections import Counter

from source_tree import list_files, read_text, run_check

# (what, path pattern, lines at which it is split); the first match counts.
FILE_LIMITS = (
    ("lit file", re.compile(r"^tests/lit/.*\.(mlir|ll|td|test)$"), 400),
    ("gtest file", re.compile(r"^tests/.*Test\.cpp$"), 600),
    ("source", re.compile(r"\.(cpp|py)$"), 600),
    ("script", re.compile(r"^(run|\.ci/run)$|\.sh$"), 600),
    ("header", re.compile(r"\.h$"), 400),
    ("TableGen file", re.compile(r"\.td$"), 400),
    # Kernels have no functions to be split by, and hand-scheduled ones five roles or more.
    ("hand-scheduled kernel", re.compile(r"^kernels_ir/kernels/sm\d+/.*\.mlir$"), 750),
    ("kernel text", re.compile(r"^kernels_ir/.*\.mlir$"), 600),
    ("CMake file", re.compile(r"(CMakeLists\.txt|\.cmake)$"), 200),
    ("README", re.compile(r"README\.md$"), 300),
)
FUNCTION_LIMIT = 80          # look again from 60 on; aim at 25
SOURCES_IN_FOLDER_LIMIT = 20 # A.h, A.cpp and A.td are one
SOURCE = re.compile(r"\.(cpp|h|td)$")
NOT_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""",
                      re.DOTALL)
SCOPE = re.compile(r"^\s*(inline\s+)?(template\s*<.*>\s*)?(namespace|class|struct|enum|union|extern)\b", re.DOTALL)


def find_functions(text):
    """(first line number, number of lines) of every function body that is in
    no other function. Works on braces: what stands between the last statement
    and a brace says whether the brace opens a scope, a function or a value."""
    code = NOT_CODE.sub(lambda match: "\n" * match.group().count("\n"), text)
    code = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", lambda match: "\n" * match.group().count("\n"),
                  code, flags=re.MULTILINE)
    line, head, head_line, depth = 1, "", 1, 0
    function_line, function_depth = None, None
    for character in code:
        if character == "\n":
            line += 1
        if character == "{":
            depth += 1
            is_value = head.rstrip().endswith(("=", "(", ",", "return", "{"))
            if function_line is None and "(" in head and not is_value and not SCOPE.match(head):
                function_line, function_depth = head_line, depth
        elif character == "}":
            if depth == function_depth:
                yield function_line, line - function_line + 1
                function_line = function_depth = None
            depth -= 1
        is_label = character == ":" and head.strip() in ("public", "private", "protected")
        if character in "{};" or is_label:
            head = ""
        elif head or not character.isspace():
            if not head:
                head_line = line
            head += character


def find_problems(root):
    problems, sources = [], set()
    for path in list_files(root):
        if SOURCE.search(path):
            sources.add(SOURCE.sub("", path))
        limit = next(((what, lines) for what, pattern, lines in FILE_LIMITS
                      if pattern.search(path)), None)
        text = read_text(root, path) if limit or path.endswith(".cpp") else None
        if text is None:
            continue
        what, line_limit = limit
        count = text.count("\n")
        if count > line_limit:
            problems.append(f"{path}: {what} of {count} lines, to be split at {line_limit}")
        if path.endswith((".cpp", ".h")):
            for first, length in find_functions(text):
                if length > FUNCTION_LIMIT:
                    problems.append(
                        f"{path}:{first}: function of {length} lines, to be split at {FUNCTION_LIMIT}")
    for folder, count in sorted(Counter(map(os.path.dirname, sources)).items()):
        if count > SOURCES_IN_FOLDER_LIMIT:
            problems.append(
                f"{folder}/: {count} sources, to be split at {SOURCES_IN_FOLDER_LIMIT}")
    return problems


if __name__ == "__main__":
    run_check(__doc__, find_problems)
