"""The common part of the NAS Parallel Benchmarks: random numbers, options and the final report.

Reference: D. Bailey et al., "The NAS Parallel Benchmarks", RNR-94-007; version 3 of the code.
"""

import argparse
import math
import sys

import numpy as np

SEED = 314159265
MULTIPLIER = 5**13
MODULUS_BITS = 46
MODULUS = 1 << MODULUS_BITS


def skip(seed, count):
    """The state of NPB's generator, x' = 5**13 x mod 2**46, `count` numbers after `seed`."""
    return seed * pow(MULTIPLIER, count, MODULUS) % MODULUS


def powers(count):
    """The powers 1, 2, ..., `count` of the multiplier, modulo 2**46, as integers.

    The table doubles: its numbers times the last known power are the next ones.  Products wrap
    at 2**64, a multiple of the modulus.
    """
    table = np.empty(count, np.uint64)
    table[:1] = MULTIPLIER
    known = min(1, count)
    while known < count:
        more = min(known, count - known)
        np.multiply(table[:more], table[known - 1], out=table[known : known + more])
        table[known : known + more] &= np.uint64(MODULUS - 1)
        known += more
    return table


def uniforms(seed, count, table=None):
    """The `count` numbers in (0, 1) after the state `seed`; `table` saves computing `powers`."""
    table = powers(count) if table is None else table[:count]
    return (table * np.uint64(seed) & np.uint64(MODULUS - 1)) * 2.0**-MODULUS_BITS


def options(name, classes, ranks=lambda size: None, **more):
    """Parse the command line of benchmark `name`; it has `--class`, and `more` positional ones.

    `ranks` is the expected number of ranks if it cannot be the present one.
    """
    from mpi4py import MPI

    parser = argparse.ArgumentParser(description=f"NAS Parallel Benchmarks, {name}")
    parser.add_argument(
        "--class", dest="name", choices=classes, default="S", help="problem size (default: S)"
    )
    for argument, settings in more.items():
        parser.add_argument(argument, **settings)
    parsed = parser.parse_args()
    comm = MPI.COMM_WORLD
    wanted = ranks(comm.Get_size())
    if wanted:
        message = f"{name}: found {comm.Get_size()} ranks, expected {wanted}"
        sys.exit(message if comm.Get_rank() == 0 else 1)
    return parsed


def power_of_two(size):
    """For `options`: a power of two is expected."""
    return "a power of two" if size & (size - 1) else None


def at_most(size, most):
    """For `options`: at most `most` ranks are expected."""
    return f"at most {most}" if size > most else None


def close(value, reference, tolerance):
    """Whether the relative error of `value` is at most `tolerance` (never, if it is not finite)."""
    return abs(value - reference) <= tolerance * abs(reference)


def report(name, problem, size, iterations, ranks, seconds, operations, verified):
    """Print NPB's final report; `operations` is the number of operations of all ranks."""
    rate = operations / seconds / 1e6 if seconds > 0.0 else math.inf
    print(f"\n {name} Benchmark Completed.")
    print(f" Class           = {problem:>24s}")
    print(f" Size            = {size:>24s}")
    print(f" Iterations      = {iterations:24d}")
    print(f" Time in seconds = {seconds:24.6f}")
    print(f" Total processes = {ranks:24d}")
    print(f" Mop/s total     = {rate:24.2f}")
    print(f" Mop/s/process   = {rate / ranks:24.2f}")
    print(f" Verification    = {'SUCCESSFUL' if verified else 'UNSUCCESSFUL':>24s}", flush=True)
