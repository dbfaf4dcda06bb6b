"""Faults of the simulated machine: ranks, hosts and links that fail or become slow.

`specification.py` reads `--fault`; `injection.py` lets the faults of a job happen.
"""
