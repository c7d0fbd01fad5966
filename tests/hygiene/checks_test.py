# SPDX-License-Identifier: Apache-2.0
"""Self-tests: every check finds the defect in a tree made for it, and finds
nothing in the same tree without the defect.
"""
import contextlib
import os
import tempfile
import unittest

import check_format
import check_layers
import check_passes
import check_readme
import check_sizes
import check_text
import support_table

HEAD = "// SPDX-License-Identifier: Apache-2.0\n//\n// What this file is for.\n"


@contextlib.contextmanager
def tree_of(files):
    """A folder with these files ({path: text})."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
            if text.startswith("#!"):
                os.chmod(full, 0o755)
        yield root


class CheckTest(unittest.TestCase):
    check = None  # a module with find_problems

    def problems(self, files):
        with tree_of(files) as root:
            return self.check.find_problems(root)

    def assert_finds(self, expected, files):
        problems = self.problems(files)
        self.assertTrue(any(expected in problem for problem in problems),
                        f"'{expected}' is not among {problems}")

    def assert_finds_nothing(self, files):
        self.assertEqual(self.problems(files), [])


class LayersTest(CheckTest):
    check = check_layers

    def test_lower_layer_may_be_included(self):
        self.assert_finds_nothing({
            "runtime/base/A.h": "", "runtime/include/spargejit/status.h": "",
            "runtime/api/B.cpp": '#include "runtime/base/A.h"\n#include "spargejit/status.h"\n'})

    def test_higher_layer_may_not(self):
        self.assert_finds("runtime/base/ depends on runtime/api/", {
            "runtime/api/B.h": "", "runtime/base/A.cpp": '#include "runtime/api/B.h"\n'})

    def test_sibling_layer_may_not(self):
        self.assert_finds("runtime/cache/ depends on compiler/", {
            "compiler/Driver/C.h": "", "runtime/cache/A.cpp": '#include "compiler/Driver/C.h"\n'})

    def test_include_relative_to_the_file_counts(self):
        self.assert_finds("runtime/base/ depends on runtime/api/", {
            "runtime/api/B.h": "", "runtime/base/A.cpp": '#  include "runtime/api/B.h"\n'})

    def test_only_compiler_includes_mlir(self):
        self.assert_finds("only compiler/ may", {"runtime/api/A.cpp": '#include "mlir/IR/Value.h"\n'})
        self.assert_finds("only compiler/ may", {"tests/unit/A.cpp": '#include "llvm/ADT/Twine.h"\n'})
        self.assert_finds_nothing({"compiler/A.cpp": '#include "mlir/IR/Value.h"\n'})

    def test_compiler_entry_shows_no_mlir(self):
        entry = {"compiler/Driver/A.h": '#include "compiler/Driver/B.h"\n',
                 "compiler/Driver/B.h": '#include "mlir/IR/Value.h"\n'}
        self.assert_finds("must show no MLIR type",
                          {**entry, "runtime/jit/A.cpp": '#include "compiler/Driver/A.h"\n'})
        self.assert_finds_nothing({**entry, "compiler/Driver/A.cpp": '#include "compiler/Driver/A.h"\n'})

    def test_compiler_is_entered_by_its_driver(self):
        self.assert_finds("only entry", {
            "compiler/Target/Host.h": "", "runtime/jit/A.cpp": '#include "compiler/Target/Host.h"\n'})

    def test_public_header_includes_public_headers_only(self):
        self.assert_finds("which is not public", {
            "runtime/base/A.h": "", "runtime/include/spargejit/b.h": '#include "runtime/base/A.h"\n'})

    def test_cuda_and_nvrtc_have_one_place(self):
        self.assert_finds("only runtime/backend/cuda/ may", {"runtime/api/A.cpp": "#include <cuda.h>\n"})
        self.assert_finds("includes nvrtc.h, but", {
            "runtime/jit/A.cpp": "#include <nvrtc.h>\n", "runtime/jit/B.cpp": "#include <nvrtc.h>\n"})

    def test_environment_is_read_in_one_file(self):
        reading = 'const char *dir() { return std::getenv("X"); }\n'
        self.assert_finds("reads the environment", {"runtime/base/A.cpp": reading, "compiler/B.cpp": reading})
        self.assert_finds_nothing({"runtime/base/A.cpp": reading, "tests/unit/B.cpp": reading})

    def test_library_does_not_print_or_exit(self):
        for call in ("std::cout << 1;", "printf(text);", "std::abort();", "exit(1);", "llvm::errs() << 1;"):
            self.assert_finds("never prints, exits", {"compiler/A.cpp": f"void f() {{ {call} }}\n"})
        self.assert_finds_nothing({"runtime/tools/A.cpp": "void f() { printf(text); }\n",
                                   "runtime/api/A.cpp": "// exit(1) is not called; snprintf(a)\n"})

    def test_link_lines_go_down(self):
        base = "add_library(low STATIC a.cpp)\n"
        self.assert_finds("runtime/base/ depends on runtime/api/", {
            "runtime/api/CMakeLists.txt": "add_library(high STATIC a.cpp)\n",
            "runtime/base/CMakeLists.txt": base + "target_link_libraries(low PRIVATE\n  high)\n"})
        self.assert_finds("only compiler/ may", {
            "runtime/base/CMakeLists.txt": base + "target_link_libraries(low PRIVATE MLIRIR)\n"})
        self.assert_finds_nothing({
            "runtime/base/CMakeLists.txt": base,
            "runtime/api/CMakeLists.txt": "add_library(high a.cpp)\ntarget_link_libraries(high low)\n"})


class SizesTest(CheckTest):
    check = check_sizes

    def test_long_files(self):
        for path, limit in (("runtime/api/A.cpp", 600), ("runtime/api/A.h", 400), ("compiler/A.td", 400),
                            ("kernels_ir/kernels/portable/a.mlir", 600), ("tests/lit/a.mlir", 400)):
            self.assert_finds_nothing({path: "//\n" * limit})
            self.assert_finds(f"of {limit + 1} lines", {path: "//\n" * (limit + 1)})

    def test_long_functions(self):
        body = "  x();\n" * check_sizes.FUNCTION_LIMIT
        for start, line in (("void f() {\n", 1), ("namespace a {\nResult<int>\nA::f(int a,\n  int b) const {\n", 2),
                            ("class A {\npublic:\n  A() : a_(1) {\n", 3), ("TEST(A, B) {\n  if (x) {\n  }\n", 1)):
            self.assert_finds(f"A.cpp:{line}: function of", {"runtime/api/A.cpp": start + body + "}\n"})
        self.assert_finds_nothing({"runtime/api/A.cpp": "namespace a {\nstruct B {\n" + "  int c;\n" * 80 + "};\n}\n"})
        self.assert_finds_nothing({"runtime/api/A.cpp": 'void f() {\n  g("{");\n}\n' + "int x;\n" * 80})

    def test_full_folders(self):
        limit = check_sizes.SOURCES_IN_FOLDER_LIMIT
        pairs = {f"runtime/api/A{i}{end}": "" for i in range(limit) for end in (".h", ".cpp")}
        self.assert_finds_nothing(pairs)
        self.assert_finds(f"{limit + 1} sources", {f"runtime/api/A{i}.h": "" for i in range(limit + 1)})


class PassesTest(CheckTest):
    check = check_passes
    dialect = 'def D : Dialect {\n  let name = "tile";\n}\n'
    op = 'def Tile_DotOp : Tile_Op<"dot", [Pure]> {\n  let description = [{\n    C1: rank 2.\n  }];\n}\n'

    def test_pass_without_lit_file(self):
        passes = {"compiler/Passes.td": 'def LowerTiles : Pass<"lower-tiles", "Op"> {}\n'}
        self.assert_finds("pass lower-tiles is in no file",
                          {**passes, "tests/lit/a.mlir": "// RUN: sparge-opt --lower-tiles-fully %s\n"})
        self.assert_finds_nothing({**passes, "tests/lit/a.mlir": "// RUN: sparge-opt --lower-tiles %s\n"})
        self.assert_finds_nothing(
            {**passes, "tests/lit/a.mlir": "// RUN: sparge-opt --pass-pipeline='any(lower-tiles{a=1})' %s\n"})

    def test_op_and_constraint_without_lit_file(self):
        definitions = {"compiler/Tile/Dialect.td": self.dialect, "compiler/Tile/Ops.td": self.op}
        positive, negative = "%1 = tile.dot %a\n", "func.func @dot_c1_rank() { tile.dot }\n"
        self.assert_finds("tile.dot is used in no file", {**definitions, "tests/lit/dot_invalid.mlir": negative})
        self.assert_finds("constraint C1 of Tile_DotOp", {**definitions, "tests/lit/dot.mlir": positive})
        self.assert_finds("constraint C1 of Tile_DotOp", {
            **definitions, "tests/lit/dot.mlir": positive, "tests/lit/b_invalid.mlir": "@async_dot_c12_rank"})
        self.assert_finds_nothing(
            {**definitions, "tests/lit/dot.mlir": positive, "tests/lit/dot_invalid.mlir": negative})


class TextTest(CheckTest):
    check = check_text
    readme = "# A\n\n## Folders\n\n```\nruntime/    what runs\n  api/      calls\n```\n"

    def files(self, text, path="runtime/api/A.cpp", readme=None):
        return {"README.md": self.readme if readme is None else readme,
                "runtime/api/Other.h": HEAD, path: text}

    def test_good_tree(self):
        self.assert_finds_nothing(self.files(HEAD + "int a; // optimise the colour\n"))

    def test_head(self):
        self.assert_finds("expected '// SPDX", self.files("// A file.\nint a;\n"))
        self.assert_finds("does not say what it is for", self.files(HEAD.split("\n", 1)[0] + "\n\nint a;\n"))
        self.assert_finds("expected '# SPDX", self.files("#!/bin/sh\ntrue\n", "runtime/api/a.sh"))

    def test_lines(self):
        for expected, line in (
                ("a path of one machine", 'a("/wo' + 'rk/x");'), ("a path of one machine", '"/ho' + 'me/me/x"'),
                ("no part of the project", "// the ag" + "ent wrote"), ("no part of the project", "# PyPI." + "org"),
                ("without an issue's number", "// TO" + "DO: later"), ("without an issue's number", "// FIX" + "ME"),
                ("white space at the end", "int a; "), ("code in a comment", "// run(a, b);"),
                ("code in a comment", "  // return a;"), ("expected British spelling", "// we specialize it"),
                ("expected British spelling", "int a; // its color is red")):
            self.assert_finds(expected, self.files(HEAD + line + "\n"))
        self.assert_finds_nothing(self.files(
            HEAD + "// TO" + "DO(#3): later; `color` and optimizeFully(x) are names\nauto color = optimize(x);\n"))
        self.assert_finds("no newline", self.files(HEAD + "int a;"))

    def test_empty_names(self):
        for name in ("StringUtils.cpp", "test_helpers.h", "common.cpp", "NewCache.h"):
            self.assert_finds("says nothing", self.files(HEAD, f"runtime/api/{name}"))
        self.assert_finds_nothing(self.files(HEAD, "runtime/api/Renewal.cpp"))

    def test_folder_map(self):
        self.assert_finds("lacks runtime/jit/", self.files(HEAD, "runtime/jit/A.cpp"))
        self.assert_finds("lacks bench/", self.files(HEAD, "bench/A.cpp"))
        self.assert_finds("has runtime/api/", {"README.md": self.readme, "runtime/A.h": HEAD})
        self.assert_finds("no code block", self.files(HEAD, readme="# A\n"))

    def test_links(self):
        self.assert_finds("links to docs/a.png", self.files(HEAD, readme=self.readme + "![a](docs/a.png)\n"))
        self.assert_finds_nothing(self.files(HEAD, readme=self.readme + "[a](runtime/api/A.cpp)\n"))

    def test_spelling_in_markdown(self):
        self.assert_finds("'optimizer'", self.files(HEAD, readme=self.readme + "The optimizer runs.\n"))
        self.assert_finds_nothing(self.files(HEAD, readme=self.readme + "Call `optimizer`.\n"))


class SupportTableTest(CheckTest):
    check = support_table
    files = {
        "kernels_ir/methods/dense.mlir": "", "kernels_ir/methods/topk.mlir": "%l = sparge.select_blocks %q\n",
        "tests/numerics/B.cpp":
            'class Gpu : public TestBackend {\n  std::string name() const override { return "Cuda"; }\n'
            "  Abilities abilities() const override {\n    return {.float32 = false, .selection = false};\n  }\n};\n"
            'class Host : public TestBackend {\n  std::string name() const override { return "Cpu"; }\n};\n',
        "tests/numerics/T.h": "#define SPARGEJIT_ON_EVERY_BACKEND_AND_TYPE(suite) \\\n"
                              "  f(DataType::Float32, DataType::Float16)\n\n",
        "tests/numerics/A.cpp": "kMaskBlocksQ = {64, 128};\nkMaskBlocksKv = {16};\nrun(\"topk\", \"dense\");\n"
                                "for (int headDim = 8; headDim <= 64; headDim += 8)\n",
        "README.md": "# A\n" + support_table.BEGIN + support_table.END}

    def test_table_of_the_tests(self):
        with tree_of(self.files) as root:
            table = support_table.make_table(root)
        for row in ("| | CPU (x86-64) | CUDA (sm_90a) |", "| float32, float16 | float16 |",
                    "| every multiple of 8 up to 64 |", "| 64, 128 queries × 16 keys |",
                    "| `dense`, `topk`, your own `.mlir` file | `dense` |"):
            self.assertIn(row, table)
        self.assert_finds("not what the tests cover", self.files)
        self.assert_finds_nothing({**self.files, "README.md": support_table.replace_table(
            self.files["README.md"], table)})

    def test_what_is_not_tested(self):
        self.assert_finds("no test in tests/numerics/ names: topp",
                          {**self.files, "kernels_ir/methods/topp.mlir": ""})
        self.assert_finds("head dimensions not found", {**self.files, "tests/numerics/A.cpp": ""})
        self.assert_finds("no place for the table", {**self.files, "README.md": "# A\n"})


class FormatTest(CheckTest):
    check = check_format

    def test_layout(self):
        self.assert_finds("A.cpp: not as", {"runtime/A.cpp": "int  a ;\n", "runtime/B.cpp": "int b;\n"})
        self.assert_finds_nothing({"runtime/A.cpp": "int a;\n"})
        self.assert_finds("no sources", {"README.md": ""})


class ReadmeTest(unittest.TestCase):
    tool = "#!/bin/sh\necho 'Commands'; echo '  demo   shows'; echo '  --quick   fast'\n"

    def shell_problems(self, line):
        with tree_of({"README.md": f"```sh\n{line}\n```\n", "run": self.tool,
                      "out/bin/tool": "#!/bin/sh\nexit $1\n"}) as root:
            readme = check_readme.Readme(root, os.path.join(root, "out"))
            return list(check_readme.check_shell_blocks(readme, root))

    def test_shell_lines(self):
        for good in ("./run demo  # builds", "./run demo --quick", "build/bin/tool 0", "cd somewhere"):
            self.assertEqual(self.shell_problems(good), [])
        for bad, expected in (("./run demon", "no such command"), ("./run demo --slow", "no option"),
                              ("build/bin/tool 3", "exit status 3"), ("no-such-tool", "exit status 127")):
            self.assertIn(expected, "".join(self.shell_problems(bad)))

    def test_programs_need_blocks(self):
        with tree_of({"README.md": "# A\n"}) as root:
            readme = check_readme.Readme(root, root)
            self.assertIn("expected a cpp block", "".join(check_readme.check_programs(readme, root)))

    def test_program_that_does_not_compile(self):
        with tree_of({"README.md": "```cpp\nint main() { return wrong; }\n```\n"
                                   "```cmake\ncmake_minimum_required(VERSION 3.25)\nproject(a CXX)\n"
                                   "add_executable(a a.cpp)\n```\n",
                      "out/cmake_install.cmake": ""}) as root:
            readme = check_readme.Readme(root, os.path.join(root, "out"))
            with tempfile.TemporaryDirectory() as folder:
                found = "".join(check_readme.check_programs(readme, folder))
            self.assertIn("'cmake --build out': exit status", found)


if __name__ == "__main__":
    unittest.main()
