"""Cells in a ring, one on each rank: a spike goes round."""

from mpi4py import MPI  # noqa: F401 (starts MPI)
from neuron import h

h.nrnmpi_init()
context = h.ParallelContext()
rank, size = int(context.id()), int(context.nhost())
soma = h.Section(name="soma")
soma.L = soma.diam = 20
soma.insert("hh")
context.set_gid2node(rank, rank)
spikes = h.NetCon(soma(0.5)._ref_v, None, sec=soma)
context.cell(rank, spikes)
synapse = h.ExpSyn(soma(0.5))
synapse.tau = 2
before = context.gid_connect((rank - 1) % size, synapse)
before.weight[0], before.delay = 0.05, 2
if rank == 0:
    clamp = h.IClamp(soma(0.5))
    clamp.delay, clamp.dur, clamp.amp = 1, 1, 1
times, cells = h.Vector(), h.Vector()
context.spike_record(-1, times, cells)
context.set_maxstep(10)
h.finitialize(-65)
context.psolve(50)
print(rank, [(round(t, 6), int(cell)) for t, cell in zip(times, cells)],
      context.allreduce(len(times), 1), flush=True)  # fmt: skip
context.barrier()
