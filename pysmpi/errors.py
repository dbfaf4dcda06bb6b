"""Errors that pysmpi reports to its users."""

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
