"""Collective operations: algorithms as schedules, and the selectors that choose among them.

An algorithm defines the messages: their senders, receivers, sizes, order and waits. See
`pysmpi.collectives.registry` to add an algorithm, `pysmpi.collectives.selection` to choose one, and
`pysmpi.collectives.cache` to obtain the schedule of one rank.
"""
