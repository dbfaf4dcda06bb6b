"""Tests that fail with pysmpi although MPICH passes them, each with the reason."""

KNOWN_FAILURES: dict[str, str] = {}
