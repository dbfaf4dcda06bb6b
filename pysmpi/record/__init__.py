"""Recording runs of a real MPI library: `mpiexec -n 64 python -m pysmpi.record app.py`.

The program runs under the MPI library of the computer, with its own mpi4py. The methods of mpi4py's
classes are wrapped, and each rank notes its calls and the time between them. At `MPI_Finalize` rank
0 writes all notes to one file, a recording as `pysmpi run --trace` writes it: `pysmpi replay`
predicts the time of the run on another machine.

`sizes` finds the bytes of arguments, `wrapping` replaces the methods, `notes` keeps the events,
`clocks` compares the clocks of the ranks, `gathering` writes the file.
"""
