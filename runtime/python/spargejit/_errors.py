# SPDX-License-Identifier: Apache-2.0
"""What failures of the library become: an exception for each status of
spargejit/c.h, with the library's message.
"""


class SpargejitError(RuntimeError):
    """Any failure of the library; `status` is its name in spargejit/c.h."""
    status = "Internal"


class InvalidArgumentError(SpargejitError, ValueError):
    """The message names the argument, what was expected and what was found."""
    status = "InvalidArgument"


class UnsupportedError(SpargejitError, NotImplementedError):
    """Well-formed, but not implemented by this build, device or method."""
    status = "Unsupported"


class CompileError(SpargejitError):
    """A kernel or method did not compile; the message has the diagnostics."""
    status = "CompileFailed"


class ArtifactMissingError(SpargejitError):
    """Compiling is off, and the message has the command that makes the kernel."""
    status = "ArtifactMissing"


class OutOfResourcesError(SpargejitError, MemoryError):
    """Memory, shared memory or registers were not enough."""
    status = "OutOfResources"


class DriverError(SpargejitError):
    """The GPU driver failed; the message has its code and text."""
    status = "DriverError"


class IoError(SpargejitError, OSError):
    """A file could not be read or written; the message has its path."""
    status = "IoError"


# By status, from 1 on.
BY_STATUS = (InvalidArgumentError, UnsupportedError, CompileError, ArtifactMissingError, OutOfResourcesError,
             DriverError, IoError, SpargejitError)


def error_of(status, message):
    known = 1 <= status <= len(BY_STATUS)
    return (BY_STATUS[status - 1] if known else SpargejitError)(message)
