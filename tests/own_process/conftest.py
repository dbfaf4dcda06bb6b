"""The command line, through which these tests look at a process."""

from __future__ import annotations

from cli.conftest import pysmpi, start, status, write

__all__ = ["pysmpi", "start", "status", "write"]
