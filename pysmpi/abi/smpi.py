"""SMPI's own functions and macros for programs in C, of its header `smpi/smpi.h`."""

from __future__ import annotations

import mmap
from math import sqrt
from typing import Any

from pysmpi.abi.process import here
from pysmpi.abi.values import text
from pysmpi.mpi.base.exporting import address_of
from pysmpi.mpi.base.ranks import Rank, Universe, current
from pysmpi.mpi.base.state import StateSlot


def execute(nanoseconds: int) -> int:
    """Compute for a time of this computer."""
    rank = current()
    timer = rank.timer
    factor: float = getattr(timer, "factor", getattr(timer, "_factor", 1e-9))
    rank.process.owe(nanoseconds * factor)
    return 0


def execute_flops(flops: int) -> int:
    """Compute for a number of operations."""
    process = current().process
    process.owe(flops / process.core.speed)
    return 0


class LoopSample:
    """The times of the iterations of a loop that have been measured."""

    __slots__ = ("count", "mean", "spread")

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0  # s
        self.spread = 0.0  # the sum of the squares of the distances from the mean

    def add(self, seconds: float) -> None:
        self.count += 1
        distance = seconds - self.mean
        self.mean += distance / self.count
        self.spread += distance * (seconds - self.mean)

    def enough(self, iterations: int, threshold: float) -> bool:
        """Whether the relative standard error is below the threshold, or none is to follow."""
        if self.count >= max(iterations, 1):
            return True
        if self.count < 2 or threshold < 0:
            return False
        error = sqrt(self.spread / (self.count - 1) / self.count)
        return error <= threshold * self.mean


class RankLoops:
    """The loops of `SMPI_SAMPLE_LOCAL` of a rank, and when its measured iterations began."""

    def __init__(self) -> None:
        self.samples: dict[Any, LoopSample] = {}
        self.begun: dict[Any, float] = {}


class SharedByRanks:
    """Samples, memory and results of calls, which the ranks of a simulation share."""

    def __init__(self) -> None:
        self.samples: dict[Any, LoopSample] = {}
        self.blocks: dict[Any, mmap.mmap] = {}
        # With the process of the rank, whose memory it is.
        self.results: dict[tuple[str, str], tuple[int, object]] = {}


_LOOPS: StateSlot[Rank, RankLoops] = StateSlot(Rank, RankLoops)
_SHARED: StateSlot[Universe, SharedByRanks] = StateSlot(Universe, SharedByRanks)
_HELD: StateSlot[Rank, dict[int, Any]] = StateSlot(Rank, dict)  # by the address of the memory


def _samples(shared: int) -> dict[Any, LoopSample]:
    return (_SHARED.of(current().universe) if shared else _LOOPS.of(current())).samples


def sample(shared: int, file: int, line: int, tag: int, iterations: int, threshold: int) -> int:
    """Whether an iteration is to run; otherwise its usual time passes."""
    rank = current()
    key = text(file), line, text(tag)
    one = _samples(shared).setdefault(key, LoopSample())
    if one.enough(iterations, threshold * 1e-9):
        rank.process.owe(one.mean)
        return 0
    _LOOPS.of(rank).begun[key] = rank.now()
    return 1


def sampled(shared: int, file: int, line: int, tag: int) -> int:
    """An iteration has run."""
    rank = current()
    key = text(file), line, text(tag)
    _samples(shared)[key].add(rank.now() - _LOOPS.of(rank).begun.pop(key))
    return 0


def shared_malloc(size: int, file: int, line: int) -> int:
    """Memory that all ranks share that allocate this size at a line; without a line its own.

    Blocks that a rank holds at the same time are different ones.
    """
    rank = current()
    held = _HELD.of(rank)
    place = (text(file), line, size)
    number = sum(key == place for key, _, _ in held.values())
    blocks = _SHARED.of(rank.universe).blocks
    block = blocks.get((*place, number)) if line else None
    if block is None:
        block = mmap.mmap(-1, max(size, 1))
        if line:
            blocks[(*place, number)] = block
    address = address_of(memoryview(block))
    held[address] = place, number, block
    return address


def shared_free(address: int) -> int:
    """Free memory of `shared_malloc`."""
    _HELD.of(current()).pop(address, None)
    return 0


def shared_call(function: int, argument: int, result: int) -> int:
    """The result of a call that one rank has made for all, 0 for none; a new one is kept."""
    results = _SHARED.of(current().universe).results
    key = text(function), text(argument)
    if result:
        results[key] = result, here()
    return results.get(key, (0, None))[0]


# In the order of `engine.h`.
CALLS = (execute, execute_flops, sample, sampled, shared_malloc, shared_free, shared_call)

HEADER = """\
/* Written by pysmpi: what SMPI's header has beside MPI. */
#ifndef SMPI_H
#define SMPI_H
#include <mpi.h>
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
void smpi_execute(double seconds);
void smpi_execute_benched(double seconds);
void smpi_execute_flops(double flops);
void smpi_execute_flops_benched(double flops);
int psm_sample(int global, const char *file, int line, const char *tag, int iterations,
               double threshold);
void psm_sampled(int global, const char *file, int line, const char *tag);
void *smpi_shared_malloc(size_t size, const char *file, int line);
void *smpi_shared_malloc_partial(size_t size, const size_t *offsets, int blocks);
void smpi_shared_free(void *data);
int smpi_shared_known_call(const char *function, const char *input);
void *smpi_shared_get_call(const char *function, const char *input);
void *smpi_shared_set_call(const char *function, const char *input, void *data);
#ifdef __cplusplus
}
#endif
/* An iteration runs, or its usual time passes. `break` ends one iteration. */
#define SMPI_SAMPLE_LOOP(loop_init, loop_end, loop_iter, global, iters, thres, tag) \\
    for (loop_init; loop_end; loop_iter) \\
        for (int psm_runs = psm_sample(global, __FILE__, __LINE__, tag, iters, thres); psm_runs; \\
             psm_sampled(global, __FILE__, __LINE__, tag), psm_runs = 0)
#define SMPI_SAMPLE_LOCAL(loop_init, loop_end, loop_iter, iters, thres) \\
    SMPI_SAMPLE_LOOP(loop_init, loop_end, loop_iter, 0, iters, thres, "")
#define SMPI_SAMPLE_LOCAL_TAG(loop_init, loop_end, loop_iter, iters, thres, tag) \\
    SMPI_SAMPLE_LOOP(loop_init, loop_end, loop_iter, 0, iters, thres, tag)
#define SMPI_SAMPLE_GLOBAL(loop_init, loop_end, loop_iter, iters, thres) \\
    SMPI_SAMPLE_LOOP(loop_init, loop_end, loop_iter, 1, iters, thres, "")
#define SMPI_SAMPLE_GLOBAL_TAG(loop_init, loop_end, loop_iter, iters, thres, tag) \\
    SMPI_SAMPLE_LOOP(loop_init, loop_end, loop_iter, 1, iters, thres, tag)
#define SMPI_SAMPLE_DELAY(duration) for (smpi_execute(duration); 0;)
#define SMPI_SAMPLE_FLOPS(flops) for (smpi_execute_flops(flops); 0;)
#define SMPI_SHARED_MALLOC(size) smpi_shared_malloc((size), __FILE__, __LINE__)
#define SMPI_PARTIAL_SHARED_MALLOC(size, offsets, blocks) \\
    smpi_shared_malloc_partial((size), (offsets), (blocks))
#define SMPI_SHARED_FREE(data) smpi_shared_free(data)
#define SMPI_SHARED_CALL(function, input, ...) \\
    (smpi_shared_known_call(#function, (input)) \\
         ? smpi_shared_get_call(#function, (input)) \\
         : smpi_shared_set_call(#function, (input), ((function)(__VA_ARGS__))))
#define SMPI_VARINIT_GLOBAL(name, type) type name
#define SMPI_VARGET_GLOBAL(name) name
#endif
"""
