"""Teams of threads as OpenMP has them, for translated programs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

_here = threading.local()
_locks: dict[str, threading.RLock] = {}
_wanted = 2


class Team:
    """The threads of a region."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.barrier = threading.Barrier(count)
        self.taken: dict[tuple[int, int], int] = {}
        self.tasks: list[threading.Thread] = []
        self.last: dict[str, list[threading.Thread]] = {}
        self.turn = 0
        self.turned = threading.Condition()
        self.errors: list[BaseException] = []


def wanted(count: int) -> None:
    """`omp_set_num_threads`."""
    global _wanted
    _wanted = count


def parallel(count: int | None, body: Callable[[], None]) -> None:
    """Run the body in all threads of a new team."""
    team = Team(count or _wanted)
    outer = getattr(_here, "team", None), getattr(_here, "number", 0)

    def run(number: int) -> None:
        _here.team, _here.number, _here.seen, _here.children = team, number, {}, []
        try:
            body()
            barrier()
        except BaseException as error:
            team.errors.append(error)
            team.barrier.abort()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(1, team.count)]
    for each in threads:
        each.start()
    run(0)
    for each in threads:
        each.join()
    _here.team, _here.number = outer
    causes = [error for error in team.errors if not isinstance(error, threading.BrokenBarrierError)]
    if causes:
        raise causes[0]


def number() -> int:
    """`omp_get_thread_num`."""
    return getattr(_here, "number", 0)


def threads() -> int:
    """`omp_get_num_threads`."""
    team = getattr(_here, "team", None)
    return team.count if team is not None else 1


def barrier() -> None:
    """All threads wait for each other, and for the tasks."""
    team = getattr(_here, "team", None)
    if team is None:
        return
    team.barrier.wait()
    while team.tasks:
        try:
            each = team.tasks.pop()
        except IndexError:
            break
        each.join()
    team.barrier.wait()
    team.turn = 0


def single(mark: int) -> bool:
    """Whether this thread executes the block: OpenMP leaves open which one, here the last.

    Of two blocks, the second one is for the thread before: no lock orders threads at a block.
    """
    team = _here.team
    times = _here.seen[mark] = _here.seen.get(mark, 0) + 1
    chosen = team.taken.setdefault((mark, times), (-1 - len(team.taken)) % team.count)
    return bool(chosen == number())


def section(index: int) -> bool:
    """Whether this thread executes the section."""
    return index % threads() == number()


def share(mark: int, first: int, last: int) -> Iterator[int]:
    """The iterations of this thread: as many neighbours as each thread has."""
    count, many = max(0, last - first), threads()
    part, more = divmod(count, many)
    begin = first + number() * part + min(number(), more)
    for each in range(begin, begin + part + (number() < more)):
        _here.iteration = each - first
        yield each


@contextmanager
def ordered() -> Iterator[None]:
    """One iteration after the other."""
    team, iteration = _here.team, _here.iteration
    with team.turned:
        team.turned.wait_for(lambda: team.turn == iteration)
    yield
    with team.turned:
        team.turn = iteration + 1
        team.turned.notify_all()


def critical(name: str) -> threading.RLock:
    """The lock of the critical regions of a name."""
    return _locks.setdefault(name, threading.RLock())


def task(names: list[str], mode: str, body: Callable[[], None]) -> None:
    """Run the body in a thread, after the tasks on which it depends."""
    team = _here.team
    mine = number()
    before = [each for name in names for each in team.last.get(name, [])
              if mode != "in" or getattr(each, "writes", True)]  # fmt: skip

    def run() -> None:
        _here.team, _here.number, _here.seen, _here.children = team, mine, {}, []
        for each in before:
            each.join()
        try:
            body()
        except BaseException as error:
            team.errors.append(error)

    thread = threading.Thread(target=run)
    thread.writes = mode != "in"  # type: ignore[attr-defined]
    for name in names:
        team.last[name] = [*(team.last.get(name, []) if mode == "in" else []), thread]
    team.tasks.append(thread)
    _here.children.append(thread)
    thread.start()


def taskwait() -> None:
    """Wait for the tasks of this one."""
    for each in _here.children:
        each.join()
    _here.children.clear()


__all__ = ["Lock"]
