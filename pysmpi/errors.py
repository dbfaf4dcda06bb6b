"""Errors that pysmpi reports to its users."""

import sys

from pysmpi.text import shortened


class PysmpiError(Exception):
    """Base of all errors that pysmpi raises on purpose."""

    exit_status = 1


class PysmpiInternalError(PysmpiError):
    """A bug in pysmpi: an error that pysmpi did not raise on purpose, which is the cause."""

    exit_status = 70


class UsageError(PysmpiError, ValueError):
    """Wrong input of the user: an option, a file, a name.

    The message is one line: the place, the found value, the expected value.
    """

    exit_status = 2

    def __str__(self) -> str:
        return shortened(super().__str__())


def missing_requirement(error: ModuleNotFoundError) -> str:
    """The message for a package that this Python lacks; empty if the module is pysmpi's own."""
    package = (error.name or "pysmpi").partition(".")[0]
    if package == "pysmpi" or package in sys.stdlib_module_names:
        return ""
    return (
        f"{sys.executable} has no package {package!r}, which pysmpi needs; install pysmpi with its "
        f"requirements: {sys.executable} -m pip install ., in a clone of pysmpi"
    )
