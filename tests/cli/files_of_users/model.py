import numpy
import scipy.fft
from mpi4py import MPI
from physics import Grid

grid = Grid(4096)
for _ in range(6):
    grid.relax()
    spectrum = scipy.fft.fftn(grid.values.reshape(64, 64))
    MPI.COMM_WORLD.allreduce(float(numpy.abs(spectrum[0, 0])))
