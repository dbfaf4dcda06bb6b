"""Latency and bandwidth between the first rank and the last.

    mpiexec -n 2 python pingpong.py --max 1048576

For each size, a message goes to and fro a number of times; half of a round trip is its time.
Ranks between the two only wait.  The returned data is compared with the sent data.
"""

import argparse
import sys

import numpy as np
from mpi4py import MPI


def sizes(largest):
    """0, 1, 2, 4, ... bytes, up to `largest`."""
    yield 0
    size = 1
    while size <= largest:
        yield size
        size *= 2


def main():
    """Measure every size; rank 0 prints the table."""
    parser = argparse.ArgumentParser(description="ping-pong latency and bandwidth")
    parser.add_argument("--max", type=int, default=1 << 20, help="largest message, bytes")
    parser.add_argument("--repeats", type=int, default=20, help="round trips for each size")
    options = parser.parse_args()
    if options.max < 0 or options.repeats < 1:
        parser.error("expected --max of at least 0 and --repeats of at least 1")

    comm = MPI.COMM_WORLD
    rank, last = comm.Get_rank(), comm.Get_size() - 1
    if last == 0:
        sys.exit("pingpong.py: found 1 rank, expected at least 2")

    if rank == 0:
        print("     bytes    microseconds        MB/s")
    right = messages = 0
    for size in sizes(options.max):
        message = (np.arange(size) % 251).astype(np.uint8)
        arrived = np.zeros(size, np.uint8)
        comm.Barrier()
        start = MPI.Wtime()
        for _ in range(options.repeats):
            if rank == 0:
                comm.Send([message, MPI.BYTE], last, 7)
                comm.Recv([arrived, MPI.BYTE], last, 8)
            elif rank == last:
                comm.Recv([arrived, MPI.BYTE], 0, 7)
                comm.Send([arrived, MPI.BYTE], 0, 8)
        seconds = (MPI.Wtime() - start) / (2 * options.repeats)
        if rank == 0:
            rate = size / seconds / 1e6 if seconds > 0.0 else 0.0
            print(f"{size:10d} {seconds * 1e6:15.3f} {rate:11.2f}", flush=True)
            messages += 1
            right += np.array_equal(message, arrived)
    if rank == 0:
        print(f"check: {right} of {messages} messages came back unchanged", flush=True)
        sys.exit(0 if right == messages else 1)


if __name__ == "__main__":
    main()
