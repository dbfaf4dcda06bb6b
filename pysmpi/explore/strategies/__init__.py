"""Strategies, one a file with its name: `pysmpi.explore.strategy` finds them."""
