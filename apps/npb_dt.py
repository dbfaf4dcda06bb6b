"""NAS Parallel Benchmarks, DT: data that flows through a graph of tasks.

    mpiexec -n 5 python npb_dt.py BH --class S

Each rank is one node of the graph. Sources make arrays of features, other nodes combine the arrays
that arrive and send the result on, sinks reduce it to a number. In the black hole (BH) many sources
feed one sink, in the white hole (WH) one source feeds many sinks, in the shuffle (SH) the data of
all sources is mixed layer by layer. The sum of the numbers is compared with the one that NPB
publishes.

    class   ranks for BH and WH   ranks for SH
    S                         5             12
    W                        11             32
    A                        21             80
    B                        43            192

Reference: M. Frumkin, L. Shabanov, "Arithmetic Data Cube as a Data Intensive Benchmark",
NAS-03-005; version 3 of the code.
"""

import math
import sys
from dataclasses import dataclass, field

import npb
import numpy as np
from mpi4py import MPI

FIELDS = 4  # numbers in a feature


@dataclass(frozen=True)
class Problem:
    """One NPB class: its size, and the sums that NPB publishes."""

    samples: int  # features of a source, on average
    deviation: int
    sources: int
    sums: dict[str, int]


CLASSES = {
    "S": Problem(1728, 128, 4, {"BH": 30892725, "WH": 67349758, "SH": 58875767}),
    "W": Problem(1728 * 8, 256, 8, {"BH": 4102461, "WH": 204280762, "SH": 186944764}),
    "A": Problem(1728 * 64, 512, 16, {"BH": 17809491, "WH": 1289925229, "SH": 610856482}),
    "B": Problem(1728 * 512, 1024, 32, {"BH": 4317114, "WH": 7877279917, "SH": 1836863082}),
}
KINDS = ("BH", "WH", "SH")
ARITY = 4  # nodes that one node of a hole combines or feeds


@dataclass
class Node:
    """A task: its number, which is its rank, and the arcs (tag, other node) to and from it."""

    number: int
    incoming: list = field(default_factory=list)
    outgoing: list = field(default_factory=list)


def layers_of(sources):
    """The first node and the number of nodes of each layer of a black hole."""
    layers = [(0, sources)]
    while layers[-1][1] > ARITY:
        first, count = layers[-1]
        layers.append((first + count, -(-count // ARITY)))
    first, count = layers[-1]
    return [*layers, (first + count, 1)]


def build(kind, sources):
    """The nodes of a graph; an arc goes from a lower to a higher number."""
    arcs = []
    if kind == "SH":
        depth = sources.bit_length() - 1
        count = sources * (depth + 1)
        for layer in range(depth):
            for place in range(sources):
                low = place & ~(1 << layer)
                head = (layer + 1) * sources + place
                arcs += [(layer * sources + low + bit, head) for bit in (0, 1 << layer)]
    else:
        layers = layers_of(sources)
        count = layers[-1][0] + 1
        for (first, width), (above, _) in zip(layers, layers[1:]):
            arcs += [(first + place, above + place // ARITY) for place in range(width)]
        if kind == "WH":  # the same graph, from its end to its beginning
            arcs = [(count - 1 - head, count - 1 - tail) for tail, head in arcs]
    nodes = [Node(number) for number in range(count)]
    for tag, (tail, head) in enumerate(arcs):
        nodes[tail].outgoing.append((tag, head))
        nodes[head].incoming.append((tag, tail))
    return nodes


def wrap(value):
    """An integer as C's int of 32 bits holds it."""
    return (value + 2**31) % 2**32 - 2**31


def remainder(value, modulus):
    """C's remainder, with the sign of `value`."""
    return int(math.fmod(value, modulus))


def power(base, exponent, modulus):
    """NPB's power modulo a number: products overflow as those of a C int do."""
    square, result = base, 1
    while exponent > 1:
        if exponent % 2:
            result = remainder(wrap(result * square), modulus)
            exponent -= 1
        else:
            square = remainder(wrap(square * square), modulus)
            exponent //= 2
    return remainder(wrap(result * square), modulus)


def length_of(problem, number):
    """The number of features of the source `number`."""
    odd = 2 * number + 1
    drawn = npb.SEED * odd % npb.MODULUS * 2.0**-npb.MODULUS_BITS
    extra = power(wrap(int(1.0 / drawn) * ord("S")), odd, 2 * problem.deviation)
    return problem.samples - problem.deviation + abs(extra)


def features(problem, number):
    """The data of a source: geometric sequences modulo four primes."""
    length = length_of(problem, number)
    exponent = length * FIELDS * (number + 1) % 3141592
    data = np.empty((length, FIELDS))
    for column, (base, prime) in enumerate(((2, 421), (2, 419), (2, 1427), (5, 3527))):
        cycle = [power(base, exponent, prime)]
        for _ in range(prime - 1):
            cycle.append(cycle[-1] * base % prime)
        # After prime - 1 steps the sequence is at its beginning again.
        data[:, column] = np.resize(np.array(cycle[1:], float), length)
    return data.reshape(-1)


def resample(data, length):
    """Spread the numbers of `data` over `length` places."""
    ratio = length // len(data)
    spread = np.zeros(length)
    inner = data[1:-1] / (ratio + 1)
    for step in range(ratio + 1):
        start = ratio // 2 + step
        spread[start : start + ratio * len(inner) : ratio] += inner
    spread[0], spread[-1] = data[0], data[-1]
    return spread


def distance(one, other):
    """Squared distances of features, summed from the first field to the last."""
    square = (one - other) ** 2
    return ((square[:, 0] + square[:, 1]) + square[:, 2]) + square[:, 3]


def window_filter(data, new, weight):
    """Replace each inner feature of `data` by the weighted nearest of three of `new`.

    Candidates are the features of `new` at the same place, after it and before it.  The distance
    for the place before is that between the features there, of which the one of `data` has been
    replaced already: the choice depends on the one before.
    """
    if len(data) < len(new):
        data = resample(data, len(new))
    if len(data) > len(new):
        new = resample(new, len(data))
    data, new = data.reshape(-1, FIELDS), new.reshape(-1, FIELDS)
    here = distance(data, new)
    after = here[2:] < here[1:-1]
    nearest = np.where(after, here[2:], here[1:-1])
    # Distances at each place after each of the three choices there.
    inner = weight * new
    changed = np.stack([here, here, here], axis=1)
    for choice, shift in ((0, 0), (1, 1), (2, -1)):
        changed[1:-1, choice] = distance(inner[1 + shift : len(new) - 1 + shift], new[1:-1])
    choice = after.astype(int)
    while True:  # all choices from those before, until nothing changes: the result of the order
        at_left = np.concatenate(([here[0]], changed[np.arange(1, len(choice)), choice[:-1]]))
        again = np.where(at_left < nearest, 2, after)
        if (again == choice).all():
            break
        choice = again
    data = data.copy()
    data[1:-1] = inner[np.arange(1, len(data) - 1) + np.array([0, 1, -1])[choice]]
    return data.reshape(-1)


def receive(comm, node):
    """Yield the arrays of all arcs to a node."""
    for tag, tail in node.incoming:
        length = np.empty(1, np.int32)
        comm.Recv(length, tail, tag)
        data = np.empty(int(length[0]))
        comm.Recv(data, tail, tag)
        yield data


def send(comm, node, data):
    """Send an array on all arcs from a node."""
    for tag, head in node.outgoing:
        comm.Send(np.array([len(data)], np.int32), head, tag)
        comm.Send(data, head, tag)


def combine(comm, problem, node):
    """Combine the arrays that arrive at a node in the middle."""
    weight = (node.number + 1) / (node.number + 2)
    result = np.zeros(problem.samples * FIELDS)
    for data in receive(comm, node):
        result = window_filter(result, data, weight)
    return (result.astype(np.int64) // len(node.incoming)).astype(float)


def reduce_arrays(comm, node):
    """Reduce the arrays that arrive at a sink to a number."""
    total = 0
    for data in receive(comm, node):
        # The sum from the first to the last, as NPB takes it: the fraction is cut off.
        mean = np.add.accumulate(data * data / len(data))[-1]
        total += int((node.number + 1) * mean)
    return (node.number + 1) * (total // len(node.incoming))


def process(comm, problem, nodes):
    """Do this rank's part; rank 0 returns the sum of the sinks, the others None."""
    rank, sum_tag = comm.Get_rank(), sum(len(node.outgoing) for node in nodes)
    if rank < len(nodes):
        node = nodes[rank]
        if not node.incoming:
            send(comm, node, features(problem, rank))
        elif node.outgoing:
            send(comm, node, combine(comm, problem, node))
        else:
            comm.Send(np.array([float(reduce_arrays(comm, node))]), 0, sum_tag + rank)
    if rank > 0:
        return None
    total, part = 0.0, np.empty(1)
    for node in nodes:
        if not node.outgoing:
            comm.Recv(part, node.number, sum_tag + node.number)
            total += part[0]
    return total


def main():
    """Run the benchmark on all ranks; rank 0 reports."""
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    kinds = {"choices": KINDS, "default": "BH", "nargs": "?", "help": "graph (default: BH)"}
    parsed = npb.options("DT", CLASSES, kind=kinds)
    problem = CLASSES[parsed.name]
    nodes = build(parsed.kind, problem.sources)
    if size < len(nodes):
        message = f"npb_dt.py: found {size} ranks, expected {len(nodes)} or more, one for each node"
        sys.exit(message if rank == 0 else 1)
    if rank == 0:
        print(" NAS Parallel Benchmarks 3 -- DT Benchmark\n")
        print(f" Graph: {parsed.kind}, {len(nodes)} nodes", flush=True)

    comm.Barrier()
    start = MPI.Wtime()
    total = process(comm, problem, nodes)
    seconds = MPI.Wtime() - start
    good = True
    if rank == 0:
        good = total == problem.sums[parsed.kind]
        print(f" Sum = {total:.0f}, expected {problem.sums[parsed.kind]}")
        sent = 8.0 * problem.samples * FIELDS * sum(len(node.outgoing) for node in nodes)
        size_text = str(problem.samples * FIELDS)
        npb.report("DT", parsed.name, size_text, len(nodes), size, seconds, sent, good)
    sys.exit(0 if comm.bcast(good) else 1)


if __name__ == "__main__":
    main()
