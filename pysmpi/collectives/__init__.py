"""Collective operations: algorithms as schedules, and the selectors that choose among them.

An algorithm describes time only: who sends how many bytes to whom, in which order, waiting for
what. Start at `pysmpi.collectives.registry` to add an algorithm, at
`pysmpi.collectives.selection` to choose one, and at `pysmpi.collectives.cache` to obtain the
schedule of one rank.
"""
