"""Debugging: a prompt in the rank that fails, or at an MPI call, with all other ranks at hand.

`breakpoints.py` reads `--break`; `prompt.py` is pdb with commands for ranks; `session.py` attaches
both to a job, and goes back to earlier calls by running the program again.
"""
