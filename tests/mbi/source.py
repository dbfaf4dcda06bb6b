"""The codes: printed by MBI's generators, which are fetched once and no part of this project."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.mpich_suite.source import download

REVISION = "1bf81e65704ce6ff01177bd2af042cdcfd30b1be"  # of mquinson/MBI
_URL = f"https://github.com/mquinson/MBI/archive/{REVISION}.tar.gz"


class Code(NamedTuple):
    """A test of a code: the file, its ranks and arguments, and what the header of the file says."""

    path: Path
    ranks: int
    arguments: tuple[str, ...]
    buffered: bool  # whether sends are buffered, where the test asks for one or the other
    error: str  # the kind of error; empty for a correct code
    lines: frozenset[int]  # those that the header names

    @property
    def name(self) -> str:
        """A name of the test."""
        return " ".join([self.path.stem, *self.arguments, *([] if self.buffered else ["zero"])])


def generators() -> Path:
    """The folder of the generators: in that of PYSMPI_MBI, or in the cache."""
    chosen = os.environ.get("PYSMPI_MBI")
    if chosen:
        return Path(chosen) / "scripts" / "generators"
    base = os.environ.get("PYSMPI_CACHE")
    cache = Path(base) if base else Path.home() / ".cache" / "pysmpi"
    folder = cache / f"MBI-{REVISION[:12]}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as place:
            archive = Path(place) / "mbi.tar.gz"
            download(_URL, archive, "PYSMPI_MBI")
            with tarfile.open(archive) as content:
                root = content.getnames()[0].partition("/")[0]
                content.extractall(place, filter="data")
            (Path(place) / root).rename(folder)
    return folder / "scripts" / "generators"


def generate(folder: Path) -> None:
    """Print the codes into a folder."""
    for generator in sorted(generators().glob("*Generator.py")):
        subprocess.run([sys.executable, str(generator)], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip


def codes(path: Path) -> Iterator[Code]:
    """The tests that the header of a file describes."""
    text = path.read_text()
    part = re.search(r"BEGIN_MBI_TESTS(.*?)END_MBI_TESTS", text, re.S)
    assert part is not None, path
    for command, outcome, message in re.findall(
        r"^\s*\$ mpirun (.*)\n\s*\| (.*)\n\s*\|(.*)$", part[1], re.M
    ):
        words = shlex.split(command)
        at = words.index("${EXE}")
        lines = {int(line) for line in re.findall(re.escape(path.name) + r":(\d+)", message)}
        kind = outcome.partition("ERROR:")[2].strip()
        yield Code(
            path, int(words[words.index("-np") + 1]), tuple(words[at + 1 :]),
            "$zero_buffer" not in words, kind, frozenset(lines if kind else ()),
        )  # fmt: skip
