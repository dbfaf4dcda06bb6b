"""Measurements of a real computer, which describe it as a machine.

`topology` reads the topology of the computer from Linux. `accesses` reads and writes memory with
functions of the C library, and `partner` is the process on the other core. `memory` measures with
them, `fragment` writes the results as a platform file, and `curves` draws them. `check` compares
the resulting predictions with a real MPI.
"""
