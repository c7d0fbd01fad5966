# SPDX-License-Identifier: Apache-2.0
"""The lit suite: text in, text out, for the compiler's tools.

Substitutions beside lit's own: %{kernels_ir}, the folder of method and kernel
texts; %{tests}, the folder of all tests.
"""
import os

import lit.formats

config.name = "spargejit"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]  # what tests read
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.suite_build_root

config.substitutions += [
    ("%{kernels_ir}", os.path.join(config.source_root, "kernels_ir")),
    ("%{tests}", os.path.join(config.source_root, "tests")),
]

# Our tools before LLVM's; nothing of the caller's environment but PATH counts.
config.environment["PATH"] = os.pathsep.join([
    os.path.join(config.build_root, "bin"), config.llvm_tools_dir,
    os.environ.get("PATH", "")])
# Without them there is no kernel cache but in tests that name a folder.
for name in ("HOME", "XDG_CACHE_HOME"):
    config.environment.pop(name, None)
config.environment["FILECHECK_OPTS"] = "--dump-input-filter=error"
