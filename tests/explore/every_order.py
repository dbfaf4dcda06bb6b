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
| `("improbe", rank, tag)` | a matched test for a message, and its receive |
| `("poll", rank, tag)` | tests for a message until there is one, and a receive |
| `("issend", rank, tag)` | begins a synchronous send |
| `("isend", rank, tag)` | begins a buffered send |
| `("irecv", rank, tag)` | begins a receive |
| `("init_send", rank, tag)` | makes and starts a persistent synchronous send |
| `("init_recv", rank, tag)` | makes and starts a persistent receive |
| `("start", i)` | starts a persistent request again if it is complete; `i` is its operation |
| `("psend", rank, tag)` | makes and starts a partitioned send of two partitions |
| `("precv", rank, tag)` | makes and starts a partitioned receive of two partitions |
| `("pready", i, part)` | a partition of the send of operation `i` is ready |
| `("parrived", i, part)` | a test of a partition of the receive of operation `i` |
| `("ibarrier",)` | begins a barrier of all ranks |
| `("cancel",)` | cancels the first request, if it is a receive from any rank, and waits for it |
| `("test",)` | a test of the first request that is not complete |
| `("spin",)` | tests of the first request until it is complete |
| `("status",)` | a test of the first request that does not end it |
| `("testany",)` | a test for one of all requests |
| `("testsome",)` | a test for some of all requests |
| `("testall",)` | a test of all requests |
| `("waitany",)` | waits for one of the requests |
| `("waitsome",)` | waits for some of the requests |
| `("waitall",)` | waits for all requests |
| `("barrier",)` | a barrier of all ranks |
| `("add", rank)` | an accumulate to the first window, without its end |
| `("fetch", rank)` | the same, and its end; the value before it is a result |
| `("swap", rank, value)` | a compare-and-swap in the first window, and its end |
| `("flush", rank)` | the end of all accumulates to a rank |
| `("lock", rank, exclusive)` | a lock of the second window |
| `("put", rank)` | a put to the second window, and its end |
| `("get", rank)` | a get from the second window, and its end |
| `("plus", rank)` | an accumulate to the second window |
| `("unlock", rank)` | the end of the lock |
| `("write",)` | writes to a file at the shared pointer |
| `("words",)` | a barrier; the windows and the file are results |

The first window is open for accesses from the beginning to the end. Messages with a fourth entry
are of a second communicator.
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
    comm: int = 0


class Posted(NamedTuple):
    """A receive, or a synchronous send to a `target`.

    `value` is that of the message of a receive, or -1.
    """

    source: int
    tag: int
    value: int
    label: int
    sent: int = -1  # the value of the message of a send
    comm: int = 0
    kind: str = ""  # of a request that is neither a send nor a receive


class RankState(NamedTuple):
    """The next operation of a rank, its receives, its results, and whether its send is taken."""

    step: int
    part: Any  # progress within an operation
    receives: tuple[Posted, ...]
    log: tuple[Any, ...]


class Access(NamedTuple):
    """An access to a word of a window that has not taken effect."""

    origin: int
    place: int
    label: int
    value: int
    expected: int | None = None  # of a compare-and-swap


class State(NamedTuple):
    """A state of the whole program."""

    ranks: tuple[RankState, ...]
    messages: tuple[Message, ...]
    taken: frozenset[int]  # values of synchronous messages that were received
    words: tuple[int, ...] = ()  # of both windows
    accesses: tuple[Access, ...] = ()
    fetched: tuple[tuple[int, int], ...] = ()  # origins, and what accesses have found
    locks: frozenset[tuple[int, int, bool]] = frozenset()  # ranks, owners, whether exclusive
    file: tuple[int, ...] = ()
    ready: frozenset[tuple[int, int, int]] = frozenset()  # ranks, operations, partitions


def accepts(posted: Posted, message: Message) -> bool:
    """Whether a receive fits a message."""
    return (
        posted.comm == message.comm
        and posted.source in (ANY, message.source)
        and posted.tag in (ANY, message.tag)
    )


def open_receive(posted: Posted) -> bool:
    """Whether a request is a receive without a message."""
    return posted.value < 0 and posted.sent < 0 and not posted.kind


def complete(program: Program, state: State, rank: int, posted: Posted) -> bool:
    """Whether a request is complete."""
    if posted.kind == "ibarrier":
        calls = same_calls(program, rank, posted.label, "ibarrier")
        return all(other.step > step for other, step in zip(state.ranks, calls))
    if posted.kind == "psend":
        return {(rank, posted.label, 0), (rank, posted.label, 1)} <= state.ready
    if posted.kind == "precv":
        return all(arrived(program, state, rank, posted.label, part) for part in range(2))
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
    start = State(ranks, (), frozenset(), (0,) * 2 * len(program))
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
    for i, access in enumerate(state.accesses):
        if not any(
            (other.origin, other.place) == (access.origin, access.place)
            for other in state.accesses[:i]
        ):
            yield effective(state, i)
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


def effective(state: State, i: int) -> State:
    """The state after an access takes effect."""
    access = state.accesses[i]
    words = list(state.words)
    old = words[access.place]
    if access.expected is None:
        words[access.place] += access.value
    elif old == access.expected:
        words[access.place] = access.value
    return state._replace(
        words=tuple(words),
        accesses=state.accesses[:i] + state.accesses[i + 1 :],
        fetched=(*state.fetched, (access.origin, old)) if access.label >= 0 else state.fetched,
    )


def arrived(program: Program, state: State, rank: int, label: int, part: int) -> bool:
    """Whether a partition of a receive is ready at its sender."""
    _, source, tag = program[rank][label]
    before = program[rank][:label]
    number = sum(op == ("precv", source, tag) for op in before)
    sends = [i for i, op in enumerate(program[source]) if op == ("psend", rank, tag)]
    return number < len(sends) and (source, sends[number], part) in state.ready


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
    comm = op[3] if len(op) == 4 else 0
    posted = Posted(op[1], op[2], -1, now.step, comm=comm) if len(op) >= 3 else None
    if kind in ACCESSES:
        yield from accessed(program, state, rank, op, value + 1)
    elif kind in ("send", "ssend"):
        waits = kind == "ssend"
        if now.part is None:
            message = Message(rank, op[1], op[2], value, waits, comm)
            new = now._replace(part="sent") if waits else done
            yield replaced(state, rank, new, messages=(*state.messages, message))
        elif value in state.taken:
            yield replaced(state, rank, done)
    elif kind in ("issend", "isend", "init_send"):
        message = Message(rank, op[1], op[2], value, kind != "isend", comm)
        request = Posted(op[1], op[2], -1, now.step, value, comm)
        new = done._replace(receives=(*now.receives, request))
        taken = state.taken | {value} if kind == "isend" else state.taken
        yield replaced(state, rank, new, messages=(*state.messages, message), taken=taken)
    elif kind == "start":
        first = program[rank][op[1]]
        if any(one.label == op[1] for one in now.receives):
            yield replaced(state, rank, done)
        elif first[0] == "init_recv":
            request = Posted(first[1], first[2], -1, op[1])
            yield replaced(state, rank, done._replace(receives=(*now.receives, request)))
        else:
            message = Message(rank, first[1], first[2], value, True)
            request = Posted(first[1], first[2], -1, op[1], value)
            new = done._replace(receives=(*now.receives, request))
            yield replaced(state, rank, new, messages=(*state.messages, message))
    elif kind in ("psend", "precv", "ibarrier"):
        request = Posted(ANY, ANY, -1, now.step, kind=kind)
        yield replaced(state, rank, done._replace(receives=(*now.receives, request)))
    elif kind == "pready":
        ready = state.ready | {(rank, op[1], op[2])}
        yield replaced(state, rank, done, ready=ready)
    elif kind == "parrived":
        if any(one.label == op[1] for one in now.receives):
            yield replaced(state, rank, done._replace(log=(*now.log, None)))
        if arrived(program, state, rank, op[1], op[2]):
            yield replaced(state, rank, done._replace(log=(*now.log, 1)))
    elif kind == "cancel":
        if not now.receives or not cancellable(now.receives[0]):
            yield replaced(state, rank, done)
        else:
            yield replaced(state, rank, ended(done, now.receives[0]))
    elif kind in ("irecv", "init_recv"):
        assert posted is not None
        yield replaced(state, rank, done._replace(receives=(*now.receives, posted)))
    elif kind == "recv":
        assert posted is not None
        if now.part is None:
            new = now._replace(part="posted", receives=(*now.receives, posted))
            yield replaced(state, rank, new)
        else:
            yield from received(state, rank, now, done)
    elif kind in ("probe", "follow", "mprobe", "poll"):
        assert posted is not None
        if now.part is None:
            for i in eligible(state, rank, posted):
                message = state.messages[i]
                if kind in ("mprobe", "poll"):
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
    elif kind == "improbe":
        assert posted is not None
        yield replaced(state, rank, done._replace(log=(*now.log, None)))
        for i in eligible(state, rank, posted):
            new = done._replace(log=(*now.log, state.messages[i].value))
            yield replaced(state, rank, new, **without(state, i))
    elif kind == "spin":
        if not now.receives:
            yield replaced(state, rank, done)
        elif complete(program, state, rank, now.receives[0]):
            yield replaced(state, rank, ended(done, now.receives[0]))
    elif kind == "status":
        if not now.receives:
            yield replaced(state, rank, done)
            return
        yield replaced(state, rank, done._replace(log=(*now.log, None)))
        if complete(program, state, rank, now.receives[0]):
            yield replaced(state, rank, done._replace(log=(*now.log, 1)))
    elif kind == "test":
        if not now.receives:
            yield replaced(state, rank, done)
            return
        yield replaced(state, rank, done._replace(log=(*now.log, None)))
        if complete(program, state, rank, now.receives[0]):
            yield replaced(state, rank, ended(done, now.receives[0]))
    elif kind in ("waitany", "testany"):
        if not now.receives:
            yield replaced(state, rank, done)
        elif kind == "testany":
            yield replaced(state, rank, done._replace(log=(*now.log, None)))
        for one in now.receives:
            if complete(program, state, rank, one):
                yield replaced(state, rank, ended(done, one))
    elif kind in ("waitsome", "testsome"):
        if not now.receives:
            yield replaced(state, rank, done)
        elif kind == "testsome":
            yield replaced(state, rank, done._replace(log=(*now.log, None)))
        ready = [one for one in now.receives if complete(program, state, rank, one)]
        for size in range(1, len(ready) + 1):
            for some in combinations(ready, size):
                log = (*now.log, tuple(one.value for one in some))
                rest = tuple(one for one in now.receives if one not in some)
                yield replaced(state, rank, done._replace(log=log, receives=rest))
    elif kind in ("waitall", "testall"):
        if kind == "testall" and now.receives:
            yield replaced(state, rank, done._replace(log=(*now.log, None)))
        if all(complete(program, state, rank, one) for one in now.receives):
            log = now.log + tuple(one.value for one in now.receives)
            yield replaced(state, rank, done._replace(log=log, receives=()))
    elif kind == "barrier":
        if now.part is None:
            yield replaced(state, rank, now._replace(part="entered"))
        elif all(
            other.step > step or (other.step == step and other.part == "entered")
            for other, step in zip(state.ranks, same_calls(program, rank, now.step, "barrier"))
        ):
            yield replaced(state, rank, done)


def cancellable(posted: Posted) -> bool:
    """Whether a request is one that `cancel` cancels."""
    return posted.sent < 0 and posted.source == ANY and not posted.kind


def same_calls(program: Program, rank: int, step: int, kind: str) -> list[int]:
    """The steps of all ranks that are the same collective call as a step of a rank."""
    number = sum(op[0] == kind for op in program[rank][:step])
    return [[i for i, op in enumerate(ops) if op[0] == kind][number] for ops in program]


ACCESSES = (
    "add", "fetch", "swap", "flush", "lock", "put", "get", "plus", "unlock", "write", "words",
)  # fmt: skip


def accessed(
    program: Program, state: State, rank: int, op: Operation, value: int
) -> Iterator[State]:
    """The states after steps of an operation on a window or on the file."""
    now = state.ranks[rank]
    done = now._replace(step=now.step + 1, part=None)
    kind = op[0]
    count = len(program)
    if kind in ("add", "plus"):
        place = op[1] + (count if kind == "plus" else 0)
        access = Access(rank, place, -1, value)
        yield replaced(state, rank, done, accesses=(*state.accesses, access))
    elif kind in ("fetch", "swap"):
        if now.part is None:
            expected = op[2] if kind == "swap" else None
            access = Access(rank, op[1], now.step, value, expected)
            new = now._replace(part="begun")
            yield replaced(state, rank, new, accesses=(*state.accesses, access))
        for origin, old in state.fetched:
            if origin == rank:
                rest = tuple(one for one in state.fetched if one[0] != rank)
                new = done._replace(log=(*now.log, old))
                yield replaced(state, rank, new, fetched=rest)
    elif kind in ("flush", "unlock"):
        place = op[1] + (count if kind == "unlock" else 0)
        if not any((one.origin, one.place) == (rank, place) for one in state.accesses):
            locks = state.locks
            if kind == "unlock":
                locks = frozenset(one for one in locks if one[:2] != (op[1], rank))
            yield replaced(state, rank, done, locks=locks)
    elif kind == "lock":
        if not any(one[0] == op[1] and (op[2] or one[2]) for one in state.locks):
            yield replaced(state, rank, done, locks=state.locks | {(op[1], rank, op[2])})
    elif kind == "put":
        words = list(state.words)
        words[count + op[1]] = value
        yield replaced(state, rank, done, words=tuple(words))
    elif kind == "get":
        new = done._replace(log=(*now.log, state.words[count + op[1]]))
        yield replaced(state, rank, new)
    elif kind == "write":
        yield replaced(state, rank, done, file=(*state.file, value))
    elif now.part is None:
        yield replaced(state, rank, now._replace(part="entered"))
    elif not state.accesses and all(
        other.step > step or (other.step == step and other.part == "entered")
        for other, step in zip(state.ranks, same_calls(program, rank, now.step, "words"))
    ):
        words = state.words[rank], state.words[count + rank], *state.file
        yield replaced(state, rank, done._replace(log=now.log + tuple(words)))


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
