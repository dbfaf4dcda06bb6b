"""The times of point-to-point patterns on each rank.

    p2p_patterns.py PATTERN:BYTES,BYTES,... ...

Rank 0 prints a line for each pattern, as `aligned.main` says.
"""

import time

import numpy as np
from aligned import main
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()
LAST = SIZE - 1

PATTERNS = {}


def pattern(receives=1):
    """Register a pattern, a function of its `Buffers`, that holds `receives` messages at once."""

    def register(function):
        PATTERNS[function.__name__] = function, receives
        return function

    return register


class Buffers:
    """The message of a pattern, the place of arriving messages, and the calls on them."""

    def __init__(self, count, receives):
        """Make a message of `count` bytes, and room for `receives` of them."""
        self.message = np.zeros(count, np.uint8)
        self.arrived = np.zeros((receives, count), np.uint8)

    def send(self, to, tag=0):
        """Blocking standard send."""
        WORLD.Send([self.message, MPI.BYTE], to, tag)

    def ssend(self, to):
        """Blocking synchronous send."""
        WORLD.Ssend([self.message, MPI.BYTE], to, 0)

    def recv(self, source, tag=0):
        """Blocking receive."""
        WORLD.Recv([self.arrived[0], MPI.BYTE], source, tag)

    def isend(self, to, tag=0):
        """Non-blocking send."""
        return WORLD.Isend([self.message, MPI.BYTE], to, tag)

    def irecv(self, source, tag=0, place=0):
        """Non-blocking receive."""
        return WORLD.Irecv([self.arrived[place], MPI.BYTE], source, tag)

    def exchange(self, to, source):
        """Send and receive at once."""
        into = [self.arrived[0], MPI.BYTE]
        WORLD.Sendrecv([self.message, MPI.BYTE], to, 0, into, source, 0)


@pattern()
def pingpong(buffers):
    """There and back, between the first and the last rank."""
    if RANK == 0:
        buffers.send(LAST)
        buffers.recv(LAST)
    elif RANK == LAST:
        buffers.recv(0)
        buffers.send(0)


@pattern()
def send_late_recv(buffers):
    """The receiver comes half a second late."""
    if RANK == 0:
        buffers.send(LAST)
    elif RANK == LAST:
        time.sleep(0.5)
        buffers.recv(0)


@pattern()
def late_send_recv(buffers):
    """The sender comes half a second late."""
    if RANK == 0:
        time.sleep(0.5)
        buffers.send(LAST)
    elif RANK == LAST:
        buffers.recv(0)


@pattern()
def ssend_late_recv(buffers):
    """The receiver of a synchronous send comes half a second late."""
    if RANK == 0:
        buffers.ssend(LAST)
    elif RANK == LAST:
        time.sleep(0.5)
        buffers.recv(0)


@pattern()
def isend_wait(buffers):
    """Both sides do other work before they wait."""
    if RANK == 0:
        request = buffers.isend(LAST)
        time.sleep(0.001)
        request.Wait()
    elif RANK == LAST:
        request = buffers.irecv(0)
        time.sleep(0.002)
        request.Wait()


@pattern()
def ring(buffers):
    """To the next, from the one before."""
    buffers.exchange((RANK + 1) % SIZE, (RANK - 1) % SIZE)


@pattern()
def pairs(buffers):
    """Neighbours exchange."""
    if RANK ^ 1 < SIZE:
        buffers.exchange(RANK ^ 1, RANK ^ 1)


@pattern()
def far_pairs(buffers):
    """Ranks half the machine apart exchange."""
    buffers.exchange((RANK + SIZE // 2) % SIZE, (RANK - SIZE // 2) % SIZE)


@pattern()
def oneway_far(buffers):
    """The lower half sends to the upper half."""
    half = SIZE // 2
    if RANK < half:
        buffers.send(RANK + half)
    elif RANK < 2 * half:
        buffers.recv(RANK - half)


@pattern(receives=SIZE if RANK == 0 else 1)
def incast(buffers):
    """All send to one."""
    if RANK == 0:
        MPI.Request.Waitall([buffers.irecv(source, 0, source) for source in range(1, SIZE)])
    else:
        buffers.send(0)


@pattern()
def fanout(buffers):
    """One sends to all."""
    if RANK == 0:
        MPI.Request.Waitall([buffers.isend(to) for to in range(1, SIZE)])
    else:
        buffers.recv(0)


@pattern(receives=4)
def halo(buffers):
    """Four neighbours exchange."""
    distances = [1, SIZE - 1, 2, SIZE - 2]
    requests = [buffers.irecv((RANK - d) % SIZE, i, i) for i, d in enumerate(distances)]
    requests += [buffers.isend((RANK + d) % SIZE, i) for i, d in enumerate(distances)]
    MPI.Request.Waitall(requests)


@pattern()
def wave(buffers):
    """From the first rank along to the last."""
    if RANK > 0:
        buffers.recv(RANK - 1)
    if RANK < LAST:
        buffers.send(RANK + 1)


@pattern()
def staggered(buffers):
    """A ring whose ranks start one after the other."""
    if RANK:  # even a sleep of nothing is a system call that takes time
        time.sleep(100e-6 * RANK)
    requests = [buffers.irecv((RANK - 1) % SIZE), buffers.isend((RANK + 1) % SIZE)]
    MPI.Request.Waitall(requests)


@pattern()
def anysource(buffers):
    """One receives from any other."""
    if RANK == 0:
        for _ in range(1, SIZE):
            buffers.recv(MPI.ANY_SOURCE, MPI.ANY_TAG)
    else:
        if RANK * 7 % SIZE:
            time.sleep(50e-6 * (RANK * 7 % SIZE))
        buffers.send(0, RANK)


def prepared(name, count):
    """Pattern `name` with messages of `count` bytes, as a function."""
    function, receives = PATTERNS[name]
    buffers = Buffers(count, receives)
    return lambda: function(buffers)


main(prepared)
