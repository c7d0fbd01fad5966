# SPDX-License-Identifier: Apache-2.0
"""expect_exit.py CODE COMMAND...: runs the command, passes its output on and
succeeds if it exits with CODE. A death by a signal never matches."""
import subprocess
import sys

expected = int(sys.argv[1])
got = subprocess.run(sys.argv[2:]).returncode
if got != expected:
    sys.exit(f"expected exit code {expected}, got {got}: {' '.join(sys.argv[2:])}")
