# SPDX-License-Identifier: Apache-2.0
"""fresh_seed.py COMMAND...: runs the command with --seed and a number drawn
afresh; prints the whole command, so that a failure can be repeated."""
import random
import subprocess
import sys

command = sys.argv[1:] + ["--seed", str(random.SystemRandom().randrange(2**63))]
print("ran:", " ".join(command), file=sys.stderr, flush=True)
sys.exit(subprocess.run(command).returncode)
