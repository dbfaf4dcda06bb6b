"""Functions of C and of MPICH's tests, for translated programs."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from mpi4py import MPI


class Jump(Exception):
    """A `goto`: its argument is the label."""


def first(items: Any, many: int) -> Any:
    """The first elements of a sequence, or None."""
    return items[:many] if isinstance(items, list | np.ndarray) else items


def group(comm: MPI.Comm) -> int:
    """The number of ranks with which a collective call communicates."""
    return comm.Get_remote_size() if comm.Is_inter() else comm.Get_size()


def sources(comm: Any) -> int:
    """The number of neighbours from which a rank receives."""
    return _degrees(comm)[0]


def destinations(comm: Any) -> int:
    """The number of neighbours to which a rank sends."""
    return _degrees(comm)[1]


def _degrees(comm: Any) -> tuple[int, int]:
    kind = comm.Get_topology()
    if kind == MPI.CART:
        return 2 * comm.Get_dim(), 2 * comm.Get_dim()
    if kind == MPI.GRAPH:
        return (comm.Get_neighbors_count(comm.Get_rank()),) * 2
    inward, outward, _ = comm.Get_dist_neighbors_count()
    return inward, outward


def same(one: Any, other: Any) -> bool:
    """Whether two pointers are equal."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return bool(one.ctypes.data == other.ctypes.data)
    return one is other


def text(memory: Any) -> str:
    """The text that begins at an address."""
    if isinstance(memory, str):
        return memory
    return bytes(memory.view("B")).partition(b"\0")[0].decode("latin-1")


def put_text(memory: Any, content: str) -> None:
    """`strcpy`."""
    codes = np.frombuffer(content.encode("latin-1") + b"\0", memory.dtype)
    memory[: len(codes)] = codes


def compare(one: Any, other: Any, many: int | None = None) -> int:
    """`strcmp` and `strncmp`."""
    left, right = text(one)[:many], text(other)[:many]
    return (left > right) - (left < right)


def longer(memory: Any, count: int, made: Callable[[int], Any]) -> Any:
    """`realloc`."""
    fresh = made(count)
    if memory is not None:
        kept = min(count, len(memory))
        fresh[:kept] = memory[:kept]
    return fresh


def sort(memory: Any, count: int, order: Callable[[Any, Any], int]) -> None:
    """`qsort`."""
    key = functools.cmp_to_key(lambda one, other: order([one], [other]))
    memory[:count] = sorted(memory[:count].tolist(), key=key)


def intercommunicators(least: int) -> Iterator[tuple[Any, bool]]:
    """Two halves of the world, as `MTestGetIntercomm` gives them."""
    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    for half in [size // 2] if size >= max(2, least) else []:
        low = rank < half
        local = world.Split(0 if low else 1, rank)
        made = local.Create_intercomm(0, world, half if low else 0, 12)
        local.Free()
        yield made, low


def free(comm: Any) -> None:
    """`MTestFreeComm`."""
    if comm not in (MPI.COMM_NULL, MPI.COMM_WORLD, MPI.COMM_SELF):
        comm.Free()


_threads: dict[threading.Thread, list[threading.Thread]] = {}


def start(function: Callable[[Any], Any], argument: Any) -> int:
    """`MTest_Start_thread`."""
    made = threading.Thread(target=function, args=(argument,))
    _threads.setdefault(threading.current_thread(), []).append(made)
    made.start()
    return 0


def join() -> int:
    """`MTest_Join_threads`."""
    for each in _threads.pop(threading.current_thread(), []):
        each.join()
    return 0
