"""The command line, through which these tests read and write files."""

from __future__ import annotations

from cli.conftest import pysmpi, start, status, write

__all__ = ["pysmpi", "start", "status", "write"]
