# SPDX-License-Identifier: Apache-2.0
"""What every file has and what none may have: licence line and purpose at the
top, British spelling, no machine's paths, no names that say nothing, no notes
without an owner, no code in comments; README's folder map and links are true.
"""
import os
import re

from source_tree import list_files, read_text, run_check

COMMENT_OF = {
    ".h": "//", ".cpp": "//", ".td": "//", ".mlir": "//", ".ll": ";", ".cu": "//",
    ".py": "#", ".cmake": "#", ".sh": "#", ".txt": "#", ".in": "#", "": "#",
}
LICENCE = "SPDX-License-Identifier: Apache-2.0"
# Written in pieces so that this file does not contain what it looks for.
MACHINE_PATH = re.compile("(?<![\\w.~-])/(" + "|".join(["wo" + "rk", "fa" + "rm", "ro" + "ot", "ho" + "me"]) + ")/")
OUTSIDE_WORDS = re.compile(
    "|".join(["\\b(sub)?ag" + "ents?\\b", "co-auth" + "ored-by", "bash_" + "jobs", "index-" + "url",
              "\\bdeb \\[?" + "http", "pypi\\." + "org", "deb\\.debian\\." + "org"]), re.IGNORECASE)
AMERICAN = re.compile(
    r"(?<![\w`.:-])((?:re|de|un)?(?:specializ|optimiz|normaliz|initializ|vectoriz|quantiz|serializ|synchroniz"
    r"|paralleliz|summariz|recogniz|organiz|minimiz|maximiz|utiliz|materializ|randomiz|generaliz"
    r"|analyz)(?:e[sdr]?|ers?|ing|ations?)|behaviors?|neighbors?|colors?|favors?|honors?|centers?|labeled"
    r"|canceled|modeled|fulfills?|gray)(?![\w`(:-])")
EMPTY_NAME = {"util", "utils", "misc", "helper", "helpers", "common", "new", "fast"}
LOOSE_NOTE = re.compile(r"\b(FIX" + r"ME|X" + r"XX|HA" + r"CK)\b|\bTO" + r"DO\b(?!\(#\d+\))")
CODE_IN_COMMENT = re.compile(
    r"^\s*//+\s*(?:(?:if|for|while|switch)\s*\(.*[{;]|return\b[^.]*;|#\s*include\s*[<\"].*"
    r"|(?:auto|int|bool|const|std::\w+|auto \*)\s+\*?\w+\s*[=;({].*;|[\w:.>-]+\([^()]*\);)\s*$")


def extension_of(path):
    name = path.rsplit("/", 1)[-1]
    return "." + name.rsplit(".", 1)[1] if "." in name[1:] else ""


def is_source(path):
    if path in ("run", ".ci/run") or path.endswith("CMakeLists.txt"):
        return True
    return extension_of(path) in COMMENT_OF and extension_of(path) not in ("", ".txt")


def prose_lines(path, text):
    """(line number, text) of what is written for people: comments, and Markdown
    outside code blocks."""
    in_block = False
    for number, line in enumerate(text.split("\n"), 1):
        if path.endswith(".md"):
            if line.lstrip().startswith("```"):
                in_block = not in_block
            elif not in_block:
                yield number, re.sub(r"`[^`]*`|\]\([^)]*\)", "``", line)
        elif is_source(path):
            comment = re.search(rf"(?:^|\s){COMMENT_OF[extension_of(path)]}+(?:\s|$)(.*)", line)
            if comment:
                yield number, re.sub(r"`[^`]*`", "``", comment.group(1))


def check_head(path, text):
    lines = text.split("\n")
    first = 1 if lines[0].startswith("#!") else 0
    mark = COMMENT_OF[extension_of(path)]
    if lines[first] != f"{mark} {LICENCE}":
        yield f"{path}:{first + 1}: expected '{mark} {LICENCE}'"
        return
    purpose = " ".join(lines[first + 1:first + 4])
    if extension_of(path) in (".h", ".cpp", ".td", ".py") and len(re.findall(r"[a-zA-Z]{2,}", purpose)) < 3:
        yield f"{path}:{first + 2}: the file does not say what it is for"
    elif extension_of(path) in (".h", ".cpp", ".td") and mark not in purpose:
        yield f"{path}:{first + 2}: the file does not say what it is for"


def check_lines(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{path}:{number}"
        if MACHINE_PATH.search(line):
            yield f"{where}: a path of one machine: {line.strip()}"
        if OUTSIDE_WORDS.search(line):
            yield f"{where}: speaks of something that is no part of the project: {line.strip()}"
        if LOOSE_NOTE.search(line):
            yield f"{where}: a note to mend something without an issue's number"
        if line != line.rstrip() and not path.endswith(".md"):
            yield f"{where}: white space at the end"
        if path.endswith((".h", ".cpp")) and CODE_IN_COMMENT.match(line):
            yield f"{where}: code in a comment: {line.strip()}"
    if text and not text.endswith("\n"):
        yield f"{path}: no newline at the end"
    for number, line in prose_lines(path, text):
        for word in AMERICAN.findall(line):
            yield f"{path}:{number}: expected British spelling, got '{word}'"


def check_name(path):
    stem = path.rsplit("/", 1)[-1].split(".")[0]
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", stem)}
    for word in sorted(words & EMPTY_NAME):
        yield f"{path}: '{word}' in a name says nothing"


def read_folder_map(readme):
    """{folder: line} of the code block after the heading 'Folders', or None.
    Two spaces more of indentation mean one level deeper."""
    block = re.search(r"^##+ Folders\n.*?```\w*\n(.*?)```", readme, re.MULTILINE | re.DOTALL)
    if not block:
        return None
    folders, parents = set(), {}
    for line in block.group(1).split("\n"):
        entry = re.match(r"^( *)([\w./-]+)/(\s|$)", line)
        if entry:
            depth = len(entry.group(1)) // 2
            parents[depth] = (parents[depth - 1] + "/" if depth else "") + entry.group(2)
            folders.add(parents[depth])
    return folders


def check_folder_map(readme, files):
    mapped = read_folder_map(readme)
    if mapped is None:
        yield "README.md: no code block after a heading 'Folders'"
        return
    folders = {os.path.dirname(path) for path in files if "/" in path}
    folders |= {"/".join(folder.split("/")[:depth]) for folder in folders
                for depth in range(1, folder.count("/") + 1)}
    folders = {folder for folder in folders if not folder.startswith(".")}
    for folder in sorted(mapped - folders):
        yield f"README.md: the folder map has {folder}/, which is not there"
    # Complete where it lists anything at all: at the top, and below each folder
    # that has an entry below it.
    complete = {os.path.dirname(folder) for folder in mapped}
    for folder in sorted(folders - mapped):
        if os.path.dirname(folder) in complete:
            yield f"README.md: the folder map lacks {folder}/"


def check_links(path, text, root):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target and not os.path.exists(
                os.path.join(root, os.path.dirname(path), target)):
            yield f"{path}: links to {target}, which is not there"


def find_problems(root):
    problems, files = [], list_files(root)
    for path in files:
        problems += check_name(path)
        text = read_text(root, path)
        if text is None or path == "LICENSE":
            continue
        if is_source(path) and text:
            problems += check_head(path, text)
        problems += check_lines(path, text)
        if path.endswith(".md"):
            problems += check_links(path, text, root)
    if "README.md" in files:
        problems += check_folder_map(read_text(root, "README.md"), files)
    else:
        problems.append("README.md: not there")
    return problems


if __name__ == "__main__":
    run_check(__doc__, find_problems)
