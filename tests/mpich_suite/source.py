"""The source of the tests: fetched once, kept in a cache, no part of this repository."""

from __future__ import annotations

import os
import tarfile
import tempfile
import urllib.request
from pathlib import Path
from typing import NamedTuple

REVISION = "12a63c78cdaa56b78836c95c6a18484f367dca38"  # of simgrid/simgrid
FOLDER = "teshsuite/smpi/mpich3-test"
PARTS = ("teshsuite/smpi", "examples/smpi", "examples/platforms")  # that are fetched
DIRECTORIES = (
    "attr", "coll", "comm", "datatype", "errhan", "group", "info", "init", "io", "pt2pt", "rma",
    "topo",
)  # fmt: skip
_URL = f"https://github.com/simgrid/simgrid/archive/{REVISION}.tar.gz"


class Case(NamedTuple):
    """A line of a list of tests: a program, its number of ranks and its arguments."""

    directory: str
    name: str
    ranks: int
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.directory}/{self.name} {self.ranks}"


def download(url: str, target: Path, variable: str) -> None:
    """Download a file; without a network, say which variable names a folder instead."""
    try:
        with urllib.request.urlopen(url, timeout=300) as stream:
            target.write_bytes(stream.read())
    except OSError as error:
        raise SystemExit(
            f"{url}: cannot be downloaded: {error}; {variable} names a folder that has it"
        ) from None


def simgrid() -> Path:
    """The source of SimGrid: that of PYSMPI_SIMGRID, or the parts with tests in the cache."""
    chosen = os.environ.get("PYSMPI_SIMGRID")
    if chosen:
        return Path(chosen)
    base = os.environ.get("PYSMPI_CACHE")
    cache = Path(base) if base else Path.home() / ".cache" / "pysmpi"
    folder = cache / f"simgrid-{REVISION[:12]}"
    if not folder.is_dir():
        _fetch(folder)
    return folder


def suite() -> Path:
    """The folder of MPICH's tests: that of PYSMPI_MPICH_SUITE, or the one in SimGrid's source."""
    chosen = os.environ.get("PYSMPI_MPICH_SUITE")
    return Path(chosen) if chosen else simgrid() / FOLDER


def _fetch(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        archive = Path(place) / "simgrid.tar.gz"
        download(_URL, archive, "PYSMPI_SIMGRID")
        with tarfile.open(archive) as content:
            root = content.getnames()[0].partition("/")[0]
            inside = tuple(f"{root}/{part}/" for part in PARTS)
            members = [each for each in content.getmembers() if each.name.startswith(inside)]
            content.extractall(place, members, filter="data")
        (Path(place) / root).rename(folder)


def cases(folder: Path, directory: str) -> list[Case]:
    """The tests of a directory, also those that its list leaves out for SMPI."""
    found = []
    for line in (folder / directory / "testlist").read_text().splitlines():
        words = line.split()
        if len(words) < 2 or not words[1].isdigit():
            continue
        name = words[0].removeprefix("#")
        if (folder / directory / f"{name}.c").is_file():
            arguments = tuple(word[4:] for word in words[2:] if word.startswith("arg="))
            found.append(Case(directory, name, int(words[1]), arguments))
    return list(dict.fromkeys(found))
