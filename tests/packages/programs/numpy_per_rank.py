"""Prints the state that numpy keeps for a process, and sends arrays, with any supported numpy."""

import copy
import inspect
import pickle
import warnings

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


def say(*what):
    print("rank", rank, *what, flush=True)


say("numpy", np.__version__)

# Random numbers: the state of a rank survives draws of the others.
np.random.seed(rank)
first = np.random.rand(3)
comm.barrier()
then = np.random.standard_normal(2)
again = np.random.RandomState(rank)
say("legacy", np.array_equal(first, again.rand(3)), np.array_equal(then, again.standard_normal(2)))
say("values", first.tolist(), then.tolist())
kept = np.random.get_state()
comm.barrier()
draws = np.random.randint(0, 1000, 4)
np.random.set_state(kept)
say("state", kept[0], kept[2], draws.tolist(), np.array_equal(draws, np.random.randint(0, 1000, 4)))
generator = np.random.default_rng(100 + rank)
say("generator", generator.integers(0, 1000, 3).tolist(), generator.random(2).tolist())
children = np.random.SeedSequence(7).spawn(size)
say("spawned", np.random.Generator(np.random.PCG64(children[rank])).normal(size=2).tolist())
say("twin", copy.deepcopy(generator).random() == generator.random())
np.random.seed(5)
order = np.arange(6)
np.random.shuffle(order)
say("shuffle", order.tolist(), np.random.choice(9, 3, replace=False).tolist())
free = comm.allgather(np.random.default_rng().random())
say("without a seed", len(set(free)) == size)

# The appearance of its functions.
for name in ("seed", "rand", "normal", "get_state", "default_rng"):
    function = getattr(np.random, name)
    say(name, function.__name__, inspect.isroutine(function), bool(function.__doc__))
say("pickled", pickle.loads(pickle.dumps(np.random.RandomState(3))).rand())

# Settings of a rank.
np.set_printoptions(precision=2 + rank)
comm.barrier()
say("digits", np.array([1 / 3]), np.get_printoptions()["precision"])
with np.errstate(divide="raise" if rank % 2 else "ignore"):
    comm.barrier()
    try:
        say("division", np.ones(1) / np.zeros(1))
    except FloatingPointError as error:
        say("caught", error)
say("errors", np.geterr()["divide"])
np.seterr(over="ignore" if rank == 0 else "warn")
comm.barrier()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    np.float32(3e38) * np.float32(10)
say("warnings", len(caught), np.geterr()["over"])

# Messages.
right, left = (rank + 1) % size, (rank - 1) % size
for code in "?bhilqBHILQefdgFDG":
    sent = (np.arange(5) * (rank + 1)).astype(code)
    got = np.empty_like(sent)
    if code == "e":
        got = comm.sendrecv(sent, right, source=left)
    else:
        comm.Sendrecv(sent, right, recvbuf=got, source=left)
    say(code, sent.dtype.itemsize, np.abs(got).sum() if code != "?" else got.sum())
pairs = np.zeros(3, dtype=[("n", "i4"), ("x", "f8")])
pairs["n"], pairs["x"] = rank, rank / 7
say("records", comm.sendrecv(pairs, right, source=left)["x"].tolist())
table = np.arange(12.0).reshape(3, 4) + rank
columns = np.asfortranarray(table)[:, ::2]
say("columns", comm.sendrecv(columns, right, source=left).tolist())
total = np.empty_like(table)
comm.Allreduce(table, total)
say("sum", total.sum(), comm.allreduce(np.float64(rank) / 3))
say("masked", comm.bcast(np.ma.masked_greater(np.arange(4), rank + 1)).filled(-1).tolist())
window = MPI.Win.Allocate_shared(8 if rank == 0 else 0, 8, comm=comm)
memory, _ = window.Shared_query(0)
shared = np.ndarray(buffer=memory, dtype="d", shape=(1,))
window.Fence()
if rank == 0:
    shared[0] = 2.5
window.Fence()
say("shared", shared[0])
counts = np.array([n + 1 for n in range(size)])
parts = np.empty(counts.sum(), "i")
comm.Allgatherv(np.full(rank + 1, rank, "i"), (parts, counts))
say("parts", parts.tolist())
say("scalars", comm.allreduce(np.int16(rank)), type(comm.allgather(np.float32(0.5))[0]).__name__)
