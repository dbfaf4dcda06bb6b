"""Selectors: a library's choice for an operation, a number of ranks and a size.

A selector is data: tables of algorithms by size, with a few lines that compute the arguments of a
table. Each module of this package holds one library. `pysmpi.collectives.registry` finds them.
"""
