"""Strategies, one a file: each registers itself in `pysmpi.explore.strategy.STRATEGIES`."""
