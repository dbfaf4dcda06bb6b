"""Random programs: phases of communication, each between two readings of the clock.

A program is a list of lines for each rank; `interpreter.c` and `interpreter.py` execute them. Each
phase begins at a date of its own, so that a difference in one does not reach the next.
"""

from __future__ import annotations

from random import Random

APART = 10  # seconds between the begins of two phases

COLLECTIVES = (
    "barrier bcast reduce allreduce gather scatter allgather alltoall reduce_scatter_block "
    "reduce_scatter gatherv scatterv allgatherv alltoallv scan exscan"
).split()
BACKGROUND = (
    "ibcast ireduce iallreduce igather iscatter iallgather ialltoall iscan iexscan "
    "ireduce_scatter_block"
).split()
REDUCTIONS = ("reduce", "scan")

# Of each kind of phase, whether its times should be those of SMPI; docs/explanation/smpi.md has
# the others.
KINDS = {
    "blocking": True,
    "nonblocking": True,
    "sendrecv": True,
    "collective": True,
    "background": True,
    "one-sided": True,
    "window": True,
    "accumulate": False,
    "creation": False,
    "persistent": False,
}


def nbytes(draw: Random, most: int) -> int:
    """A size of a message."""
    if draw.random() < 0.12:
        return min(most, draw.choice([0, 1, 8, 1000, 4096, 65535, 65536, 65537]))
    return min(most, int(2 ** draw.uniform(0, draw.choice([8, 14, 17, 21]))))


class Program:
    """The lines of each rank, the label of each phase, and the groups of communicators."""

    def __init__(self, draw: Random, nprocs: int) -> None:
        self.draw = draw
        self.lines: list[list[str]] = [[] for _ in range(nprocs)]
        self.labels: list[str] = []
        self.nprocs = nprocs
        self.groups: list[list[list[int]]] = [[list(range(nprocs))]]

    def say(self, rank: int, *words: object) -> None:
        """One operation of a rank."""
        self.lines[rank].append(" ".join(map(str, words)))

    def begin(self, label: str) -> None:
        """A phase begins."""
        self.labels.append(label)
        for rank in range(self.nprocs):
            self.say(rank, "align", APART * len(self.labels))
            self.say(rank, "time")

    def end(self) -> None:
        """The phase ends."""
        for rank in range(self.nprocs):
            self.say(rank, "time")

    def communicator(self) -> tuple[int, list[list[int]]]:
        """One of the communicators, which may be several groups."""
        number = self.draw.randrange(len(self.groups))
        return number, self.groups[number]

    # Phases.

    def pairs(self, most: int) -> list[tuple[int, int, int, int, int]]:
        """Messages: communicator, both ranks of the job, the place of both in their group."""
        number, groups = self.communicator()
        found = []
        for _ in range(self.draw.randint(1, most)):
            group = self.draw.choice(groups)
            if len(group) > 1:
                i, j = self.draw.sample(range(len(group)), 2)
                found.append((number, group[i], group[j], i, j))
        return found

    def blocking(self) -> None:
        """Blocking messages, one after the other."""
        for comm, one, other, i, j in self.pairs(2 * self.nprocs):
            size, tag = nbytes(self.draw, 1 << 21), self.draw.randint(0, 5)
            self.say(one, self.draw.choice(["send"] * 4 + ["ssend"]), comm, j, tag, size)
            self.say(other, "recv", comm, i, tag, size)

    def nonblocking(self) -> None:
        """Messages that are all started, then awaited."""
        started: list[list[tuple[object, ...]]] = [[] for _ in range(self.nprocs)]
        for tag, (comm, one, other, i, j) in enumerate(self.pairs(3 * self.nprocs)):
            size = nbytes(self.draw, 1 << 21)
            started[one].append((self.draw.choice(["isend"] * 5 + ["issend"]), comm, j, tag, size))
            started[other].append(("irecv", comm, i, tag, size))
        for rank, words in enumerate(started):
            self.draw.shuffle(words)
            if self.draw.random() < 0.3:
                self.say(rank, "sleep", self.draw.randint(1, 3000))
            for number, one in enumerate(words):
                self.say(rank, *one, number)
            if self.draw.random() < 0.4:
                self.say(rank, "sleep", self.draw.randint(1, 500))
            if words and self.draw.random() < 0.5:
                self.say(rank, "waitall", len(words))
            else:
                order = list(range(len(words)))
                self.draw.shuffle(order)
                for number in order:
                    self.say(rank, "wait", number)

    def sendrecv(self) -> None:
        """A shift around each group."""
        comm, groups = self.communicator()
        for group in groups:
            size = len(group)
            if size > 1:
                by = self.draw.randint(1, size - 1)
                sizes = [nbytes(self.draw, 1 << 21) for _ in group]
                for i, rank in enumerate(group):
                    source = (i - by) % size
                    self.say(
                        rank, "sendrecv", comm, (i + by) % size, sizes[i], source, sizes[source]
                    )

    def collective(self, name: str) -> None:
        """A collective call of every group of a communicator."""
        comm, groups = self.communicator()
        for group in groups:
            root, count = self.draw.randrange(len(group)), nbytes(self.draw, 1 << 18)
            if any(word in name for word in REDUCTIONS):
                count = max(1, count // 4)
            counts = [self.draw.randint(1, count + 1) for _ in group]
            table = [[self.draw.randint(0, count) for _ in group] for _ in group]
            for i, rank in enumerate(group):
                if self.draw.random() < 0.15:
                    self.say(rank, "sleep", self.draw.randint(1, 2000))
                words: list[object] = [count]
                if name in ("gatherv", "scatterv", "allgatherv", "reduce_scatter"):
                    words = [*counts]
                elif name == "alltoallv":
                    words = [*table[i], *(row[i] for row in table)]
                self.say(rank, name, comm, root, *words)

    def background(self, name: str) -> None:
        """A non-blocking collective call, perhaps some sleep, and the wait."""
        first = [len(lines) for lines in self.lines]
        self.collective(name)
        sleep = self.draw.choice([0, self.draw.randint(1, 1000)])
        for rank, lines in enumerate(self.lines):
            if len(lines) > first[rank]:
                if sleep:
                    self.say(rank, "sleep", sleep)
                self.say(rank, "wait", 0)

    def persistent(self) -> None:
        """Persistent messages, started some times."""
        started: list[list[tuple[object, ...]]] = [[] for _ in range(self.nprocs)]
        for tag, (comm, one, other, i, j) in enumerate(self.pairs(self.nprocs)):
            size = nbytes(self.draw, 1 << 21)
            started[one].append(("send_init", comm, j, tag, size))
            started[other].append(("recv_init", comm, i, tag, size))
        for rank, words in enumerate(started):
            for number, one in enumerate(words):
                self.say(rank, *one, number)
            for _ in range(2 if words else 0):
                self.say(rank, "startall", len(words))
                self.say(rank, "waitall", len(words))

    def accumulate(self) -> None:
        """Accumulate operations between two fences."""
        self.one_sided("accumulate")

    def one_sided(self, *kinds: str) -> None:
        """Accesses to windows between two fences."""
        for rank in range(self.nprocs):
            self.say(rank, "fence")
        for _ in range(self.draw.randint(1, self.nprocs)):
            one, other = self.draw.sample(range(self.nprocs), 2)
            kind = self.draw.choice(kinds or ("put", "get"))
            self.say(one, kind, other, nbytes(self.draw, 1 << 18) & ~3)
        for rank in range(self.nprocs):
            self.say(rank, "fence")

    def create(self) -> None:
        """A communicator from the first one."""
        number = len(self.groups)
        if self.draw.random() < 0.3:
            for rank in range(self.nprocs):
                self.say(rank, "dup", number)
            self.groups.append(self.groups[0])
            return
        colors = [self.draw.randrange(2) for _ in range(self.nprocs)]
        for rank, color in enumerate(colors):
            self.say(rank, "split", color, number)
        groups = [[r for r, c in enumerate(colors) if c == color] for color in set(colors)]
        self.groups.append(groups)


def program(draw: Random, nprocs: int, persistent: bool = False) -> Program:
    """A random program."""
    made = Program(draw, nprocs)
    for _ in range(draw.choice([0, 0, 1, 2])):
        made.begin("creation")
        made.create()
        made.end()
    window = draw.random() < 0.2
    if window:
        made.begin("window")
        for rank in range(nprocs):
            made.say(rank, "window")
        made.end()
    for _ in range(draw.randint(2, 6)):
        kind = draw.choice(
            ["blocking", "nonblocking", "sendrecv", "collective", "collective", "background"]
            + (["one-sided", "one-sided", "accumulate"] if window else [])
            + (["persistent"] if persistent else [])
        )  # fmt: skip
        name = draw.choice({"collective": COLLECTIVES, "background": BACKGROUND}.get(kind, [""]))
        made.begin(f"{kind} {name}".strip())
        method = getattr(made, kind.replace("-", "_"))
        method(name) if name else method()
        made.end()
    return made
