"""A queue simulated by SimPy in each rank with its own rate; waits averaged over ranks."""

from __future__ import annotations

import random

import simpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
random.seed(40 + comm.rank)
environment = simpy.Environment()
counter = simpy.PriorityResource(environment, capacity=2)
store = simpy.Store(environment, capacity=5)
waits: list[float] = []


def customer(number: int):
    arrived = environment.now
    with counter.request(priority=number % 3) as turn:
        result = yield turn | environment.timeout(15)
        if turn not in result:
            waits.append(-1)
            return
        waits.append(environment.now - arrived)
        yield environment.timeout(random.expovariate(1 / (4 + comm.rank)))
    yield store.put(number)


def source():
    for number in range(80):
        environment.process(customer(number))
        yield environment.timeout(random.expovariate(0.4))


def sink():
    item = None
    try:
        while True:
            item = yield store.get()
            yield environment.timeout(0.5)
    except simpy.Interrupt as interrupt:
        print(comm.rank, "interrupted", interrupt.cause, item)


environment.process(source())
process = environment.process(sink())
environment.run(until=120)
process.interrupt("stop")
environment.run(until=500)
print(comm.rank, len(waits), waits.count(-1), sum(waits) / len(waits), environment.now)
print(comm.rank, comm.allreduce(sum(waits)), comm.allreduce(max(waits), MPI.MAX), len(store.items))
