"""Drawings of schedules: the messages of each step.

A step is a unit of the drawing, not of time: every message takes one, from the first step in which
both of its ranks are ready for it. A rank continues with the next step after it has waited for a
message. A tree of depth d therefore has d steps, a ring P - 1, and requests that are started
together share one.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import repeat

from pysmpi.collectives.volumes import Volume, describe, most_of
from pysmpi.errors import PysmpiError
from pysmpi.kernel.schedule import (
    IRECV,
    ISEND,
    RECV,
    SEND,
    SHARE,
    WAIT,
    WAITALL,
    Schedule,
)


@dataclass(frozen=True, slots=True)
class Arrow:
    """A message in its step, counted from 1.

    `sent` and `received` are the places of its bytes at the sender and at the receiver.
    """

    step: int
    source: int
    dest: int
    nbytes: int
    sent: str = ""
    received: str = ""


@dataclass(slots=True)
class Picture:
    """The messages of a collective call, by step, source and destination."""

    title: str
    ranks: int
    arrows: list[Arrow] = field(default_factory=list)
    most: Volume | None = None  # of a rank, where the schedules name their bytes

    @property
    def steps(self) -> int:
        """The number of steps."""
        return max((arrow.step for arrow in self.arrows), default=0)

    @property
    def nbytes(self) -> int:
        """The bytes of all messages."""
        return sum(arrow.nbytes for arrow in self.arrows)

    def of_step(self, step: int) -> list[Arrow]:
        """The messages of one step."""
        return [arrow for arrow in self.arrows if arrow.step == step]

    def headline(self) -> str:
        """One line: the title and the totals."""
        return (
            f"{self.title}: {_plural(self.steps, 'step')}, "
            f"{_plural(len(self.arrows), 'message')}, {size(self.nbytes)} in all"
        )

    def volumes(self) -> str:
        """One line: the largest volumes of a rank; empty if schedules do not name bytes."""
        most = self.most
        if most is None:
            return ""
        parts = (("sends", most.sent), ("receives", most.received), ("combines", most.combined))
        return "a rank " + ", ".join(f"{verb} up to {size(nbytes)}" for verb, nbytes in parts)


def _plural(n: int, thing: str) -> str:
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


def size(nbytes: int) -> str:
    """Bytes for people, exact: 1536 B, 4 KiB, 1 MiB."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= scale and nbytes % scale == 0:
            return f"{nbytes // scale} {unit}"
    return f"{nbytes} B"


@dataclass(slots=True)
class _Request:
    """A send or receive: when it was ready, and the step of its message once matched."""

    rank: int
    ready: int
    place: object = None
    step: int = 0


def trace(title: str, schedules: Sequence[Schedule]) -> Picture:
    """The picture of the schedules of all ranks."""
    picture = Picture(title, len(schedules))
    waiting: dict[tuple[int, int, int, bool], deque[_Request]] = defaultdict(deque)

    named = all(schedule.places is not None for schedule in schedules)
    if named:
        picture.most = most_of(schedules)

    def post(
        rank: int, peer: int, tag: int, nbytes: int, sends: bool, now: int, place: object
    ) -> _Request:
        mine = _Request(rank, now, place)
        source, dest = (rank, peer) if sends else (peer, rank)
        others = waiting[source, dest, tag, not sends]
        if not others:
            waiting[source, dest, tag, sends].append(mine)
            return mine
        other = others.popleft()
        mine.step = other.step = max(now, other.ready) + 1
        bytes_of = ("", "")
        if named:
            from_to = (mine.place, other.place) if sends else (other.place, mine.place)
            bytes_of = (describe(from_to[0], nbytes), describe(from_to[1], nbytes))
        picture.arrows.append(Arrow(mine.step, source, dest, nbytes, *bytes_of))
        return mine

    ranks = [_walk(schedule, rank, post) for rank, schedule in enumerate(schedules)]
    moving = deque(range(len(ranks)))
    stuck = 0
    while moving and stuck <= len(moving):
        rank = moving.popleft()
        stuck += 1
        for progress in ranks[rank]:
            if not progress:
                moving.append(rank)
                break
            stuck = 0
    if moving:
        raise PysmpiError(f"{title}: the schedules of ranks {sorted(moving)[:8]} do not end")
    picture.arrows.sort(key=lambda arrow: (arrow.step, arrow.source, arrow.dest))
    return picture


def _walk(schedule: Schedule, rank: int, post: object) -> Iterator[bool]:
    """Execute one rank's steps; yield False when it must wait, True after progress."""
    now = 0
    slots: list[_Request] = []
    places = schedule.places or repeat(None)
    for code, peer, nbytes, tag, place in zip(
        schedule.codes, schedule.peers, schedule.sizes, schedule.tags, places
    ):
        if code in (SEND, RECV, ISEND, IRECV, SHARE):
            sends = code in (SEND, ISEND, SHARE)
            request = post(rank, peer, tag, nbytes, sends, now, place)  # type: ignore[operator]
            if code in (ISEND, IRECV):
                slots.append(request)
                continue
            if code == SHARE:
                continue
            awaited = [request]
        elif code in (WAIT, WAITALL):
            awaited = slots[peer:nbytes]
        else:
            continue
        while not all(request.step for request in awaited):
            yield False
        yield True
        steps = [request.step for request in awaited if request.step]
        if steps:
            now = max(now, *steps)


def as_text(picture: Picture, width: int = 100) -> str:
    """The drawing for a terminal: a paragraph for each step, exchanges as one arrow."""
    lines = [picture.headline()]
    if picture.volumes():
        lines.append(picture.volumes())
    number = len(str(picture.steps))
    for step in range(1, picture.steps + 1):
        by_size: dict[int, list[Arrow]] = defaultdict(list)
        for arrow in picture.of_step(step):
            by_size[arrow.nbytes].append(arrow)
        head = f"step {step:{number}d}"
        for nbytes, arrows in sorted(by_size.items()):
            label = f"{head}  {size(nbytes):>9}  "
            head = " " * len(head)
            line = label
            for word in _words(arrows):
                if len(line) + len(word) > width and line.strip():
                    lines.append(line.rstrip())
                    line = " " * len(label)
                line += word + "  "
            lines.append(line.rstrip())
    return "\n".join(lines)


def _words(arrows: Sequence[Arrow]) -> list[str]:
    left = [(arrow.source, arrow.dest) for arrow in arrows]
    there = set(left)
    words = []
    for source, dest in left:
        if (dest, source) in there:
            if source < dest:
                words.append(f"{source}<->{dest}")
        else:
            words.append(f"{source}->{dest}")
    return words


# Colours of sizes, smallest first; they differ in lightness too.
COLOURS = ("#4c78a8", "#e45756", "#2e8b57", "#b279a2", "#f58518", "#5f5f5f")
ROW, COLUMN, MARGIN, TOP = 30, 110, 64, 64


def as_svg(picture: Picture) -> str:
    """The picture as SVG: lines for ranks, columns for steps, arrows for messages."""
    steps, ranks = max(picture.steps, 1), picture.ranks
    sizes = sorted({arrow.nbytes for arrow in picture.arrows})
    legend = sizes[: len(COLOURS)]
    height = TOP + ranks * ROW + 34
    wide = max(MARGIN + steps * COLUMN + 24, 12 + round(7.4 * len(picture.headline())),
               MARGIN + 100 * len(legend))  # fmt: skip
    colour = {nbytes: COLOURS[min(i, len(COLOURS) - 1)] for i, nbytes in enumerate(sizes)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{height}" '
        f'viewBox="0 0 {wide} {height}" font-family="sans-serif" font-size="12">',
        "<defs>",
        *(
            f'<marker id="m{i}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0.5 8 4 0 7.5z" fill="{shade}"/></marker>'
            for i, shade in enumerate(COLOURS)
        ),
        "</defs>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="12" y="20" font-size="14">{escape(picture.headline())}</text>',
        f'<text x="12" y="36" fill="#555">{escape(picture.volumes())}</text>',
    ]
    bottom = TOP + ranks * ROW
    for step in range(steps):
        x = MARGIN + step * COLUMN
        if step % 2 == 0:
            parts.append(
                f'<rect x="{x}" y="{TOP - 8}" width="{COLUMN}" height="{ranks * ROW}" '
                'fill="#f3f3f3"/>'
            )
        parts.append(
            f'<text x="{x + COLUMN / 2}" y="{TOP - 14}" text-anchor="middle" fill="#555">'
            f"step {step + 1}</text>"
        )
    for rank in range(ranks):
        y = TOP + rank * ROW + ROW / 2 - 8
        parts.append(
            f'<text x="{MARGIN - 10}" y="{y + 4}" text-anchor="end">{rank}</text>'
            f'<line x1="{MARGIN}" y1="{y}" x2="{MARGIN + steps * COLUMN}" y2="{y}" '
            'stroke="#bbb"/>'
        )
    for arrow in picture.arrows:
        parts.append(_svg_arrow(arrow, colour[arrow.nbytes]))
    for i, nbytes in enumerate(legend):
        x, y = MARGIN + 100 * i, bottom + 16
        more = " or more" if i == len(COLOURS) - 1 and len(sizes) > len(COLOURS) else ""
        parts.append(
            f'<rect x="{x}" y="{y - 4}" width="16" height="4" fill="{COLOURS[i]}"/>'
            f'<text x="{x + 21}" y="{y + 2}">{size(nbytes)}{more}</text>'
        )
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _svg_arrow(arrow: Arrow, colour: str) -> str:
    which = f": {arrow.sent} to {arrow.received}" if arrow.sent else ""
    left = MARGIN + (arrow.step - 1) * COLUMN
    begin, end = (TOP + rank * ROW + ROW / 2 - 8 for rank in (arrow.source, arrow.dest))
    return (
        f'<line x1="{left + 12}" y1="{begin:g}" x2="{left + COLUMN - 12}" y2="{end:g}" '
        f'stroke="{colour}" stroke-width="1.4" marker-end="url(#m{COLOURS.index(colour)})">'
        f"<title>step {arrow.step}: {arrow.source} to {arrow.dest}, {size(arrow.nbytes)}{which}"
        "</title>"
        "</line>"
    )
