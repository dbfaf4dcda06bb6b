"""Measuring a real computer, to describe it as a machine.

`topology` asks Linux what the computer is made of, `accesses` has the C library read and write
memory, `partner` is the process on the other core, `memory` measures with them, `fragment` writes
what was found as a platform file, `curves` draws it, and `check` compares the predictions that
follow from it with a real MPI.
"""
