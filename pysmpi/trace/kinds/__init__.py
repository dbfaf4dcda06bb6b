"""Formats of timelines, one a file, named like the suffix: `pysmpi.trace.formats` finds them."""
