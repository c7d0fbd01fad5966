# SPDX-License-Identifier: Apache-2.0
"""Dependencies go down only (the folder tree in README.md): by #include, and
by CMake's link lines. Some headers belong to one folder or one file, and some
calls have no place in a library.
"""
import re

from source_tree import list_files, read_text, run_check

# A folder may depend on itself and on folders of a lower rank. The longest
# matching prefix counts.
RANKS = {
    "kernels_ir/": 0,
    "runtime/include/": 1,
    "runtime/base/": 1,
    "compiler/": 2,
    "runtime/cache/": 2,
    "autotune/db/": 2,
    "autotune/space/": 2,
    "runtime/plan/": 3,
    "runtime/jit/": 3,
    "runtime/backend/cpu/": 3,
    "runtime/backend/cuda/": 3,
    "runtime/api/": 4,
    "autotune/search/": 3,
    "compiler/tools/": 5,
    "runtime/c_abi/": 5,
    "runtime/tools/": 5,
    "runtime/python/": 6,
    "bench/": 7,
    "tests/": 8,
}
# Folders of one layer that belong together, so that they may use each other.
ONE_LAYER = [{"runtime/include/", "runtime/base/"}]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
LINK = re.compile(r"target_link_libraries\s*\(([^)]*)\)", re.DOTALL)
TARGET = re.compile(r"\badd_(?:library|executable)\s*\(\s*([\w.:-]+)")
CALL_OUT = re.compile(
    r"\bstd::(?:cout|cerr|clog|exit|abort|quick_exit|signal|terminate)\b|\bfmt::print\b|\bllvm::(?:outs|errs|dbgs)\b"
    r"|(?<![\w:.>])(?:printf|fprintf|puts|perror|exit|_exit|abort|signal|sigaction)\s*\(")
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
LLVM_HEADERS = ("mlir/", "llvm/", "llvm-c/", "mlir-c/")
SOURCES = (".h", ".cpp", ".cc", ".inc", ".td")
PRODUCT = ("kernels_ir/", "compiler/", "runtime/", "autotune/")


def layer_of(path):
    """The prefix in RANKS that `path` belongs to, or None."""
    matching = [prefix for prefix in RANKS if path.startswith(prefix)]
    return max(matching, key=len) if matching else None


def may_use(user, used):
    return (user == used or RANKS[used] < RANKS[user]
            or any(user in group and used in group for group in ONE_LAYER))


def resolve_include(path, name, files):
    """The repository's file that an #include means, or None for a library's."""
    folder = path.rsplit("/", 1)[0] if "/" in path else ""
    for candidate in (name, f"runtime/include/{name}", f"{folder}/{name}"):
        if candidate in files:
            return candidate
    return None


def find_mlir_include(path, texts, seen):
    """The first header of MLIR or LLVM that `path` includes, also through
    others of ours; None when there is none."""
    seen.add(path)
    for _, name in INCLUDE.findall(texts.get(path, "")):
        if name.startswith(LLVM_HEADERS):
            return name
        inner = resolve_include(path, name, texts)
        found = inner and inner not in seen and find_mlir_include(inner, texts, seen)
        if found:
            return found
    return None


def check_includes(path, texts):
    user = layer_of(path)
    text, files = texts[path], texts
    for _, name in INCLUDE.findall(text):
        if name.startswith(LLVM_HEADERS):
            if not path.startswith("compiler/"):
                yield f"{path}: includes {name}, which only compiler/ may"
            continue
        used_file = resolve_include(path, name, files)
        if used_file is None:
            continue
        used = layer_of(used_file)
        if user is None or used is None:
            yield f"{path}: includes {used_file}, but one of the two is in no known layer"
        elif not may_use(user, used):
            yield f"{path}: includes {used_file}, so {user} depends on {used}, which is not below it"
        elif (used == "compiler/" and not path.startswith(("compiler/", "tests/"))
              and not used_file.startswith("compiler/Driver/")):
            yield f"{path}: includes {used_file}, but compiler/Driver/ is the only entry"
        elif used == "compiler/" and not path.startswith("compiler/"):
            shown = find_mlir_include(used_file, texts, set())
            if shown:
                yield f"{path}: includes {used_file}, which must show no MLIR type but includes {shown}"
        if path.startswith("runtime/include/") and not used_file.startswith("runtime/include/"):
            yield f"{path}: a public header includes {used_file}, which is not public"


def check_owned_headers(texts):
    """Headers and calls that one folder or one file has for itself."""
    nvrtc_users, environment_users = [], []
    for path, text in texts.items():
        names = [name for _, name in INCLUDE.findall(text)]
        if "cuda.h" in names and not path.startswith("runtime/backend/cuda/"):
            yield f"{path}: includes cuda.h, which only runtime/backend/cuda/ may"
        if "nvrtc.h" in names:
            nvrtc_users.append(path)
        in_product = path.startswith(PRODUCT) and not path.endswith(".td")
        if in_product and re.search(r"\b(secure_)?getenv\s*\(|\benviron\b", text):
            environment_users.append(path)
    for what, users in (("includes nvrtc.h", nvrtc_users),
                        ("reads the environment", environment_users)):
        if len(users) > 1:
            yield f"{users[1]}: {what}, but {users[0]} does already; one file may"


def check_calls(path, text):
    """The library never prints, exits, or installs a signal handler."""
    if (path.startswith(PRODUCT) and path.endswith((".h", ".cpp"))
            and not path.startswith(("runtime/tools/", "compiler/tools/"))):
        for call in CALL_OUT.findall(COMMENT_OR_TEXT.sub("", text)):
            yield f"{path}: {call} in the library, which never prints, exits or takes signals"


def without_comments(text):
    return re.sub(r"#[^\n]*", "", text)


def check_link_lines(cmake_texts):
    owners = {}
    for path, text in cmake_texts.items():
        for target in TARGET.findall(without_comments(text)):
            owners[target] = path
    for path, text in cmake_texts.items():
        for arguments in LINK.findall(without_comments(text)):
            target, *used_targets = arguments.split()
            user_path = owners.get(target, path)
            user = layer_of(user_path)
            if user is None:
                continue
            for used_target in used_targets:
                is_llvm = used_target.startswith(("MLIR", "LLVM")) or used_target == "spargejit_llvm"
                if is_llvm and not user.startswith("compiler/"):
                    yield f"{path}: {target} links {used_target}, which only compiler/ may"
                used = layer_of(owners.get(used_target, ""))
                if used is not None and not may_use(user, used):
                    yield f"{path}: {target} links {used_target}, so {user} depends on {used}, which is not below it"


def find_problems(root):
    files = list_files(root)
    texts = {path: read_text(root, path) or "" for path in files if path.endswith(SOURCES)}
    cmake_texts = {path: read_text(root, path) or "" for path in files
                   if path.endswith(("CMakeLists.txt", ".cmake"))}
    problems = []
    for path, text in texts.items():
        problems += check_includes(path, texts)
        problems += check_calls(path, text)
    problems += check_owned_headers(texts)
    problems += check_link_lines(cmake_texts)
    return problems


if __name__ == "__main__":
    run_check(__doc__, find_problems)
