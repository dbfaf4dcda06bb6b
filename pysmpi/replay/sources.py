"""The files of a time-independent trace, and the lines of each rank.

A trace is either an index, which names one file for each rank, in the order of the ranks, or one
file in which each line begins with the number of its rank. Lines are read when they are needed.
"""

from __future__ import annotations

import io
import os
from array import array
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

from pysmpi.errors import UsageError
from pysmpi.io.reading import LONGEST_LINE, open_lines, too_long

# Lines of a rank that follow each other in a file: the number of the first, their bytes, and how
# often they are repeated. Only newlines end lines: `str.splitlines` knows more.
Block = tuple[int, list[bytes], int]
_FIRST = 1 << 12  # bytes of a run of lines that are read at first: programs begin without loops
_COMMON = 1 << 16  # bytes of a rank that are read at once
_HEAD = 64  # bytes that two repetitions have in common, at least
_WORTH = 1 << 10  # bytes of repetitions that are worth their search
_CANDIDATES = 8  # places where the second repetition may begin
_PASS = 1 << 18  # bytes of a file of all ranks that are looked at at once


def words_of(line: bytes) -> list[str]:
    """The words of a line, without its comment."""
    return line.decode("utf-8", "replace").split("#", 1)[0].split()


class Source:
    """The source of the lines of one rank. `name` is the file, for messages."""

    name: str
    rank: int

    def blocks(self) -> Iterator[Block]:
        """The lines of the rank; each begins with the number of the rank, unless it is wrong."""
        raise TypeError("a source of lines has to say which")


class OwnFile(Source):
    """A file of one rank."""

    def __init__(self, rank: int, path: Path, name: str) -> None:
        self.rank = rank
        self.path = path
        self.name = name

    def blocks(self) -> Iterator[Block]:
        """The lines of the file."""
        try:
            size = os.path.getsize(self.path)
        except OSError as error:
            raise UsageError(f"{self.name}: cannot be read: {error.strerror}") from None
        yield from _pieces(self.path, self.name, [(0, size, 1)])


class CommonFile(Source):
    """The lines of one rank in a file of all; `runs` holds the places of its runs of lines.

    A run is three numbers: the offset of its first byte, its number of bytes, the number of its
    first line.
    """

    def __init__(self, rank: int, path: Path, name: str) -> None:
        self.rank = rank
        self.path = path
        self.name = name
        self.runs = array("q")

    def blocks(self) -> Iterator[Block]:
        """The lines."""
        runs = self.runs
        yield from _pieces(
            self.path,
            self.name,
            ((runs[i], runs[i + 1], runs[i + 2]) for i in range(0, len(runs), 3)),
        )


def _pieces(path: Path, name: str, runs: Iterable[tuple[int, int, int]]) -> Iterator[Block]:
    """The lines of some runs of a file: (first byte, number of bytes, number of the first line)."""
    with open_lines(path) as stream:
        for offset, count, number in runs:
            end = offset + count
            rest = b""
            size = _FIRST
            while offset < end:
                stream.seek(offset)
                data = rest + stream.read(min(size, end - offset))
                offset = min(end, offset + size)
                # A line that is longer than what is read at once is not copied too often.
                size = max(_COMMON, len(data))
                whole = len(data) if offset == end else data.rfind(b"\n") + 1
                for lines, times in _repetitions(data[:whole]):
                    yield number, lines, times
                    number += len(lines) * times
                rest = data[whole:]
                if len(rest) > LONGEST_LINE:
                    raise too_long(name, number)


def _repetitions(data: bytes) -> Iterator[tuple[list[bytes], int]]:
    """The lines of some bytes, and how often they follow each other.

    The trace of a loop repeats its lines, which need to be looked at only once then.
    """
    period, count = _repeated(data)
    if count:
        yield data[: period - 1].split(b"\n"), count
        data = data[period * count :]
    if data:
        lines = data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        yield lines, 1


def _repeated(data: bytes) -> tuple[int, int]:
    """The length of the lines with which the bytes begin, and the number of their repetitions.

    Both are 0 if repetitions are not worth it.
    """
    if len(data) < _WORTH:
        return 0, 0
    head = b"\n" + data[:_HEAD]
    period = 0
    for _ in range(_CANDIDATES):
        period = data.find(head, period, len(data) // 2 + _HEAD) + 1
        if period == 0:
            break
        # The longest beginning that is repeated: by growing pieces, then by shrinking ones.
        same, piece = 0, period
        while _follows(data, same, piece, period):
            same += piece
            piece *= 2
        while piece > period:
            piece //= 2
            if _follows(data, same, piece, period):
                same += piece
        if same >= _WORTH:
            return period, same // period + 1
    return 0, 0


def _follows(data: bytes, start: int, size: int, period: int) -> bool:
    """Whether a piece of the bytes is repeated one period later."""
    end = start + size
    return end + period <= len(data) and data[start:end] == data[start + period : end + period]


def sources(path: str | os.PathLike[str]) -> list[Source]:
    """The sources of a trace's ranks, by rank. Raises UsageError for invalid files."""
    file = Path(path)
    name = str(path)
    with open_lines(file) as stream:
        for line in _lines(stream, name):
            words = line.split("#", 1)[0].split()
            if words:
                if words[0].isdigit() and len(words) > 1:
                    return _common(file, name)
                break
        else:
            raise UsageError(f"{name}: expected a time-independent trace, got no line")
    return _indexed(file, name)


def _indexed(file: Path, name: str) -> list[Source]:
    found: list[Source] = []
    with open_lines(file) as stream:
        for number, line in enumerate(_lines(stream, name), 1):
            word = line.split("#", 1)[0].strip()
            if not word:
                continue
            # smpirun writes names relative to its working directory.
            places = [file.parent / word, Path(word)]
            for place in places:
                if os.path.isfile(place):  # False also for names that cannot be
                    found.append(OwnFile(len(found), place, word))
                    break
            else:
                raise UsageError(
                    f"{name}, line {number}: no such file {word[:80]!r} for rank {len(found)}, "
                    "expected a trace with 'RANK ACTION ...' lines, or one file name a line"
                )
    if len(found) == 1:
        return _common(found[0].path, found[0].name)  # type: ignore[attr-defined]
    return found


def _common(file: Path, name: str) -> list[Source]:
    """The ranks of one file: a pass over the file finds the places of each rank's lines."""
    found: dict[int, CommonFile] = {}
    last: CommonFile | None = None
    offset = number = 0
    with open_lines(file) as stream:
        while data := stream.read(_PASS):
            if not data.endswith(b"\n"):
                data += stream.readline(LONGEST_LINE)
                if len(data) > LONGEST_LINE:
                    raise too_long(name, number + data.count(b"\n") + 1)
            count = data.count(b"\n")
            if last is not None:
                # Often the lines of a rank follow each other.
                own = b"%d " % last.rank
                if data.startswith(own) and data.count(b"\n" + own) == count - 1:
                    if data.endswith(b"\n"):
                        last.runs[-2] += len(data)
                        offset += len(data)
                        number += count
                        continue
            for line in io.BytesIO(data):
                number += 1
                words = line.split(None, 1)
                if words and not words[0].startswith(b"#"):
                    try:
                        rank = int(words[0])
                    except ValueError:
                        rank = -1
                    if rank < 0:
                        word = words[0].decode("utf-8", "replace")
                        raise UsageError(
                            f"{name}, line {number}: expected the number of a rank, got {word!r}"
                        )
                    if last is None or rank != last.rank:
                        last = found.get(rank)
                        if last is None:
                            last = found[rank] = CommonFile(rank, file, name)
                        last.runs.extend((offset, 0, number))
                if last is not None:
                    last.runs[-2] += len(line)
                offset += len(line)
    missing = next((rank for rank in range(len(found)) if rank not in found), None)
    if missing is not None:
        raise UsageError(
            f"{name}: expected lines of all ranks, got lines of rank {max(found)} and none of rank "
            f"{missing}"
        )
    return [found[rank] for rank in range(len(found))]


def _lines(stream: IO[bytes], name: str) -> Iterator[str]:
    """The lines of a file as text."""
    for number, line in enumerate(iter(partial(stream.readline, LONGEST_LINE), b""), 1):
        if len(line) == LONGEST_LINE:
            raise too_long(name, number)
        yield line.decode("utf-8", "replace")
