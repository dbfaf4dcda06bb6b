"""A model of MPI's messages that visits every state of a small program.

It shares nothing with pysmpi: no clock, no strategy, no reduction. A program is a list of
operations a rank. In each state, any rank may do its next operation, and any receive may take any
message that MPI 4.1, sections 3.5 and 3.8 allow. `outcomes` follows all of these steps. `run` is
the same program for mpi4py.

| operation | meaning |
| --- | --- |
| `("send", rank, tag)` | a buffered send; its value is unique |
| `("ssend", rank, tag)` | a synchronous send |
| `("recv", rank, tag)` | a receive; rank and tag may be `ANY` |
| `("probe", rank, tag)` | a probe, and a receive with the same arguments |
| `("follow", rank, tag)` | a probe, and a receive from the source and tag of its status |
| `("mprobe", rank, tag)` | a matched probe and its receive |
| `("iprobe", rank, tag)` | a test for a message |
| `("issend", rank, tag)` | begins a synchronous send |
| `("irecv", rank, tag)` | begins a receive |
| `("cancel",)` | cancels the first request, if it is a receive from any rank, and waits for it |
| `("test",)` | a test of the first request that is not complete |
| `("testany",)` | a test of all requests |
| `("waitany",)` | waits for one of the requests |
| `("waitsome",)` | waits for some of the requests |
| `("waitall",)` | waits for all requests |
| `("barrier",)` | a barrier of all ranks |
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

ANY = -1
Operation = tuple[Any, ...]
Program = tuple[tuple[Operation, ...], ...]
DEADLOCK = "deadlock"


class Message(NamedTuple):
    """A message that no receive has taken."""

    source: int
    target: int
    tag: int
    value: int
    waits: bool  # whether its sender waits


class Posted(NamedTuple):
    """A receive, or a synchronous send to a `target`.

    `value` is that of the message of a receive, or -1.
    """

    source: int
    tag: int
    value: int
    label: int
    sent: int = -1  # the value of the message of a send


class RankState(NamedTuple):
    """The next operation of a rank, its receives, its results, and whether its send is taken."""

    step: int
    part: Any  # progress within an operation
    receives: tuple[Posted, ...]
    log: tuple[Any, ...]


class State(NamedTuple):
    """A state of the whole program."""

    ranks: tuple[RankState, ...]
    messages: tuple[Message, ...]
    taken: frozenset[int]  # values of synchronous messages that were received


def accepts(posted: Posted, message: Message) -> bool:
    """Whether a receive fits a message."""
    return posted.source in (ANY, message.source) and posted.tag in (ANY, message.tag)


def open_receive(posted: Posted) -> bool:
    """Whether a request is a receive without a message."""
    return posted.value < 0 and posted.sent < 0


def complete(state: State, posted: Posted) -> bool:
    """Whether a request is complete."""
    return posted.value >= 0 if posted.sent < 0 else posted.sent in state.taken


def eligible(state: State, rank: int, receive: Posted) -> Iterator[int]:
    """The indices of messages that a receive or a probe could take: one of each source."""
    sources = set()
    earlier = []
    for posted in state.ranks[rank].receives:
        if posted.label == receive.label:
            break
        if open_receive(posted):
            earlier.append(posted)
    for i, message in enumerate(state.messages):
        if message.target != rank or message.source in sources or not accepts(receive, message):
            continue
        sources.add(message.source)
        if not any(accepts(posted, message) for posted in earlier):
            yield i


def value_of(rank: int, step: int) -> int:
    """The value of the message that an operation sends."""
    return 100 * rank + step


def outcomes(program: Program) -> set[Any]:
    """All results of a program: the logs of its ranks, or `DEADLOCK`."""
    ranks = tuple(RankState(0, None, (), ()) for _ in program)
    start = State(ranks, (), frozenset())
    seen = {start}
    stack = [start]
    results: set[Any] = set()
    while stack:
        state = stack.pop()
        following = list(after(program, state))
        if not following:
            over = all(rank.step == len(ops) for rank, ops in zip(state.ranks, program))
            results.add(tuple(rank.log for rank in state.ranks) if over else DEADLOCK)
        for new in following:
            if new not in seen:
                seen.add(new)
                stack.append(new)
    return results


def after(program: Program, state: State) -> Iterator[State]:
    """The states that can follow a state."""
    for rank, now in enumerate(state.ranks):
        for posted in now.receives:
            if open_receive(posted):
                for i in eligible(state, rank, posted):
                    yield matched(state, rank, posted, i)
        if now.step < len(program[rank]):
            yield from advanced(program, state, rank, program[rank][now.step])


def replaced(state: State, rank: int, new: RankState, **others: Any) -> State:
    """The state with another state of a rank."""
    ranks = (*state.ranks[:rank], new, *state.ranks[rank + 1 :])
    return state._replace(ranks=ranks, **others)


def without(state: State, i: int) -> dict[str, Any]:
    """Messages and taken messages once a message is received."""
    message = state.messages[i]
    taken = state.taken | {message.value} if message.waits else state.taken
    return {"messages": state.messages[:i] + state.messages[i + 1 :], "taken": taken}


def matched(state: State, rank: int, receive: Posted, i: int) -> State:
    """The state after a receive takes a message."""
    message = state.messages[i]
    now = state.ranks[rank]
    receives = tuple(
        posted._replace(value=message.value) if posted.label == receive.label else posted
        for posted in now.receives
    )
    return replaced(state, rank, now._replace(receives=receives), **without(state, i))


def advanced(program: Program, state: State, rank: int, op: Operation) -> Iterator[State]:
    """The states after steps of a rank's next operation."""
    now = state.ranks[rank]
    done = now._replace(step=now.step + 1, part=None)
    kind = op[0]
    value = value_of(rank, now.step)
    posted = Posted(op[1], op[2], -1, now.step) if len(op) == 3 else None
    if kind in ("send", "ssend"):
        waits = kind == "ssend"
        if now.part is None:
            message = Message(rank, op[1], op[2], value, waits)
            new = now._replace(part="sent") if waits else done
            yield replaced(state, rank, new, messages=(*state.messages, message))
        elif value in state.taken:
            yield replaced(state, rank, done)
    elif kind == "issend":
        message = Message(rank, op[1], op[2], value, True)
        request = Posted(op[1], op[2], -1, now.step, value)
        new = done._replace(receives=(*now.receives, request))
        yield replaced(state, rank, new, messages=(*state.messages, message))
    elif kind == "cancel":
        if not now.receives or now.receives[0].sent >= 0 or now.receives[0].source != ANY:
            yield replaced(state, rank, done)
        else:
            yield replaced(state, rank, ended(done, now.receives[0]))
    elif kind == "irecv":
        assert posted is not None
        yield replaced(state, rank, done._replace(receives=(*now.receives, posted)))
    elif kind == "recv":
        assert posted is not None
        if now.part is None:
            new = now._replace(part="posted", receives=(*now.receives, posted))
            yield replaced(state, rank, new)
        else:
            yield from received(state, rank, now, done)
    elif kind in ("probe", "follow", "mprobe"):
        assert posted is not None
        if now.part is None:
            for i in eligible(state, rank, posted):
                message = state.messages[i]
                if kind == "mprobe":
                    new = done._replace(log=(*now.log, message.value))
                    yield replaced(state, rank, new, **without(state, i))
                    continue
                log = now.log
                if kind == "probe":
                    log = (*log, message.source)
                else:
                    posted = posted._replace(source=message.source, tag=message.tag)
                new = now._replace(part="posted", receives=(*now.receives, posted), log=log)
                yield replaced(state, rank, new)
        else:
            yield from received(state, rank, now, done)
    elif kind == "iprobe":
        assert posted is not None
        yield replaced(state, rank, done._replace(log=(*now.log, None)))
        for i in eligible(state, rank, posted):
            log = (*now.log, state.messages[i].source)
            yield replaced(state, rank, done._replace(log=log))
    elif kind == "test":
        if not now.receives:
            yield replaced(state, rank, done)
            return
        yield replaced(state, rank, done._replace(log=(*now.log, None)))
        if complete(state, now.receives[0]):
            yield replaced(state, rank, ended(done, now.receives[0]))
    elif kind in ("waitany", "testany"):
        if not now.receives:
            yield replaced(state, rank, done)
        elif kind == "testany":
            yield replaced(state, rank, done._replace(log=(*now.log, None)))
        for one in now.receives:
            if complete(state, one):
                yield replaced(state, rank, ended(done, one))
    elif kind == "waitsome":
        if not now.receives:
            yield replaced(state, rank, done)
        ready = [one for one in now.receives if complete(state, one)]
        for size in range(1, len(ready) + 1):
            for some in combinations(ready, size):
                log = (*now.log, tuple(one.value for one in some))
                rest = tuple(one for one in now.receives if one not in some)
                yield replaced(state, rank, done._replace(log=log, receives=rest))
    elif kind == "waitall":
        if all(complete(state, one) for one in now.receives):
            log = now.log + tuple(one.value for one in now.receives)
            yield replaced(state, rank, done._replace(log=log, receives=()))
    elif kind == "barrier":
        if now.part is None:
            yield replaced(state, rank, now._replace(part="entered"))
        elif all(
            other.step > step or (other.step == step and other.part == "entered")
            for other, step in zip(state.ranks, barriers(program, rank, now.step))
        ):
            yield replaced(state, rank, done)


def barriers(program: Program, rank: int, step: int) -> list[int]:
    """The steps of all ranks that are the same barrier as a step of a rank."""
    number = sum(op == ("barrier",) for op in program[rank][:step])
    return [[i for i, op in enumerate(ops) if op == ("barrier",)][number] for ops in program]


def received(state: State, rank: int, now: RankState, done: RankState) -> Iterator[State]:
    """The end of a blocking receive."""
    (mine,) = [one for one in now.receives if one.label == now.step]
    if mine.value >= 0:
        yield replaced(state, rank, ended(done, mine))


def ended(rank: RankState, receive: Posted) -> RankState:
    """A rank that has learnt of the end of a receive."""
    receives = tuple(one for one in rank.receives if one.label != receive.label)
    return rank._replace(receives=receives, log=(*rank.log, receive.value))


class Fold:
    """A log of which only a small number is left: many orders lead to the same one."""

    def __init__(self) -> None:
        self.number = 1

    def append(self, entry: Any) -> None:
        """Log one entry."""
        for one in entry if isinstance(entry, tuple) else (entry,):
            self.number = (2 * self.number + (7 if one is None else one)) % 11

    def __iadd__(self, entries: Any) -> Fold:
        for entry in entries:
            self.append(entry)
        return self


def folded(log: Any) -> int:
    """The number that is left of a log."""
    fold = Fold()
    fold += log
    return fold.number


def run(program: Program, log: Any = None) -> Any:
    """The program of a rank for mpi4py; returns its log, a list if none is given."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    status = MPI.Status()
    log = [] if log is None else log
    requests: list[Any] = []
    wildcards: list[Any] = []

    def wild(source: int, tag: int) -> tuple[int, int]:
        return (
            MPI.ANY_SOURCE if source == ANY else source,
            MPI.ANY_TAG if tag == ANY else tag,
        )

    def shown(result: Any) -> Any:
        return -1 if result is None else result  # of a send

    for step, (kind, *rest) in enumerate(program[comm.rank]):
        value = value_of(comm.rank, step)
        source, tag = wild(*rest) if len(rest) == 2 else (ANY, ANY)
        if kind == "send":
            comm.send(value, dest=rest[0], tag=rest[1])
        elif kind == "ssend":
            comm.ssend(value, dest=rest[0], tag=rest[1])
        elif kind == "recv":
            log.append(comm.recv(source=source, tag=tag))
        elif kind == "probe":
            comm.Probe(source, tag, status)
            log.append(status.source)
            log.append(comm.recv(source=source, tag=tag))
        elif kind == "follow":
            comm.Probe(source, tag, status)
            log.append(comm.recv(source=status.source, tag=status.tag))
        elif kind == "mprobe":
            log.append(comm.mprobe(source, tag).recv())
        elif kind == "iprobe":
            log.append(status.source if comm.Iprobe(source, tag, status) else None)
        elif kind == "irecv":
            requests.append(comm.irecv(source=source, tag=tag))
            if rest[0] == ANY:
                wildcards.append(requests[-1])
        elif kind == "issend":
            requests.append(comm.issend(value, dest=rest[0], tag=rest[1]))
        elif kind == "waitall":
            log += map(shown, MPI.Request.waitall(requests))
            requests.clear()
        elif kind == "barrier":
            comm.Barrier()
        elif not requests:
            continue
        elif kind == "cancel":
            if requests[0] in wildcards:
                requests[0].Cancel()
                result = requests.pop(0).wait(status)
                log.append(-1 if status.Is_cancelled() else result)
        elif kind == "test":
            done, result = requests[0].test()
            log.append(shown(result) if done else None)
            if done:
                del requests[0]
        elif kind == "testany":
            i, done, result = MPI.Request.testany(requests)
            log.append(shown(result) if done else None)
            if done:
                del requests[i]
        elif kind == "waitany":
            i, result = MPI.Request.waitany(requests)
            log.append(shown(result))
            del requests[i]
        elif kind == "waitsome":
            indices, results = MPI.Request.waitsome(requests)
            log.append(tuple(map(shown, results)))
            requests = [one for i, one in enumerate(requests) if i not in indices]
    return log


def random_program(seed: int, most: int = 5) -> Program:
    """A program of 2 to 4 ranks in which most messages have a receive.

    Each of its parts has at most `most` messages.
    """
    draw = random.Random(seed)
    count = draw.choice((2, 3, 3, 3, 4))
    parts: list[list[Operation]] = [[] for _ in range(count)]
    tested = set()
    for part in range(draw.choice((1, 1, 2))):
        if part:
            for ops in parts:
                if draw.random() < 0.8:
                    ops.append(("waitall",))
                ops.append(("barrier",))
        # Most messages of a part go to one rank: only these compete.
        center = draw.randrange(count)
        for _ in range(draw.randint(2, most)):
            source, target = draw.sample(range(count), 2)
            if draw.random() < 0.6 and source != center:
                target = center
            tag = draw.randrange(2)
            kind = draw.choice(("send", "send", "ssend", "issend"))
            parts[source].append((kind, target, tag))
            if kind == "issend" and draw.random() < 0.3:
                parts[source].append((draw.choice(("waitany", "waitsome", "waitall")),))
            if draw.random() < 0.06:
                continue
            wanted = ANY if draw.random() < 0.7 else source
            label = ANY if draw.random() < 0.5 else tag
            kinds = ["recv", "recv", "irecv", "irecv", "irecv", "probe", "follow", "mprobe"]
            parts[target].append((draw.choice(kinds), wanted, label))
            if target not in tested and draw.random() < 0.25:
                # A search refuses a test only once in a row.
                tested.add(target)
                where = draw.randint(0, len(parts[target]))
                test = draw.choice((("iprobe", ANY, label), ("test",), ("testany",)))
                parts[target].insert(where, test)
            if draw.random() < 0.3:
                ends = ("waitany", "waitany", "waitsome", "waitall", "cancel")
                parts[target].append((draw.choice(ends),))
    for ops in parts:
        ops.append(("waitall",))
    return tuple(tuple(ops) for ops in parts)
