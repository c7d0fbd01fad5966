# SPDX-License-Identifier: Apache-2.0
"""interrupt.py LINES FILE COMMAND...: runs the command, sends it what Ctrl-C does
once FILE has LINES lines, and says how it ended."""
import pathlib
import signal
import subprocess
import sys
import time

# A shell's background jobs are told to ignore it, and so would theirs be.
signal.signal(signal.SIGINT, signal.default_int_handler)
lines, file, command = int(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while process.poll() is None:
    if file.exists() and file.read_bytes().count(b"\n") >= lines:
        process.send_signal(signal.SIGINT)
        break
    time.sleep(0.01)
status = process.wait(timeout=60)
print("interrupted" if status == -signal.SIGINT else f"ended with {status}")
