"""Errors that pysmpi reports to the person who made them."""

from pysmpi.text import shortened


class PysmpiError(Exception):
    """Base of every error that pysmpi raises on its own account."""

    exit_status = 1


class UsageError(PysmpiError, ValueError):
    """Input of the user is wrong: an option, a file, a name.

    The message is one line: where it is, what was found, what is expected.
    """

    exit_status = 2

    def __str__(self) -> str:
        return shortened(super().__str__())
