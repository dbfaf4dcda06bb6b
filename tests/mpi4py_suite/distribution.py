"""The source distribution of mpi4py whose test suite is run: fetched once, kept in a cache.

The suite is not part of this repository. It is looked for in the folder that the environment
variable PYSMPI_CACHE names, by default `~/.cache/pysmpi`; there, or in PYSMPI_MPI4PY_SOURCE, an
unpacked source distribution, it can also be put by hand where there is no network.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest

VERSION = "4.1.2"
SHA256 = "56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02"


class Unavailable(Exception):
    """The suite is missing and could not be fetched; the argument is the reason."""


def without(what: str, error: Unavailable) -> NoReturn:
    """Skip a test without the suite; fail if PYSMPI_REQUIRE_SUITES requires it."""
    reason = f"{what} is not available: {error}"
    if os.environ.get("PYSMPI_REQUIRE_SUITES"):
        pytest.fail(reason)
    pytest.skip(reason)


def cache() -> Path:
    """The folder of fetched files."""
    named = os.environ.get("PYSMPI_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pysmpi"


def suite() -> Path:
    """The folder `test` of the source distribution, fetched if it is not there yet."""
    given = os.environ.get("PYSMPI_MPI4PY_SOURCE")
    root = Path(given) if given else cache() / f"mpi4py-{VERSION}"
    if not (root / "test" / "main.py").is_file():
        if given:
            raise Unavailable(f"PYSMPI_MPI4PY_SOURCE={given}: no test/main.py in it")
        _fetch(root.parent)
    return root / "test"


def _fetch(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                   "--disable-pip-version-check", "--no-binary", "mpi4py", "--dest", place,
                   f"mpi4py=={VERSION}"]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"pip download mpi4py=={VERSION} took more than 300 s") from None
        if done.returncode:
            last = (done.stderr.strip() or "no message").splitlines()[-1]
            raise Unavailable(f"pip download mpi4py=={VERSION} failed (no network?): {last}")
        archive = Path(place) / f"mpi4py-{VERSION}.tar.gz"
        found = hashlib.sha256(archive.read_bytes()).hexdigest()
        if found != SHA256:
            raise Unavailable(f"{archive.name}: SHA-256 is {found}, expected {SHA256}")
        with tarfile.open(archive) as content:
            content.extractall(place, filter="data")
        unpacked = Path(place) / f"mpi4py-{VERSION}"
        target = folder / unpacked.name
        if not target.exists():
            unpacked.rename(target)
