"""Builds of distributions, and virtual environments for them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What builds and tests leave in a checkout.
LEFT = re.compile(
    r"(^|/)(\.venv|venv|build|dist|__pycache__|[^/]+\.egg-info|\.\w+_cache|\.hypothesis"
    r"|\.pysmpi)/|\.(so|pyc)$"
)


def files_of_checkout() -> list[str]:
    """The files that a clone would have."""
    if not (ROOT / ".git").exists():
        found = (path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file())
        return [name for name in found if not LEFT.search(name)]
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


@dataclass
class Installation:
    """A virtual environment with pysmpi from one wheel."""

    directory: Path

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment in a directory without sources."""
        place = self.directory / "elsewhere"
        place.mkdir(exist_ok=True)
        removed = ("PYTHONPATH", "PYSMPI_INTERPRETED")
        variables = {name: value for name, value in os.environ.items() if name not in removed}
        return subprocess.run(
            [self.directory / "bin" / words[0], *words[1:]], cwd=place, env=variables,
            capture_output=True, text=True,
        )  # fmt: skip


def tool(*words: str | Path, cwd: Path, **variables: str) -> str:
    """Run a module of Python, and return its output."""
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=cwd, env={**os.environ, **variables}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def wheel_of(archive: Path, folder: Path, **variables: str) -> Path:
    """Build a wheel from a source distribution.

    Of the modules that are compiled, those of the kernel and the network model suffice: all of them
    take a minute, and this checkout has them.
    """
    with tarfile.open(archive) as stream:
        stream.extractall(folder, filter="data")
    (sources,) = folder.iterdir()
    setup = (sources / "setup.py").read_text()
    first = '    "pysmpi/kernel/*.py",\n    "pysmpi/network/flows.py",\n'
    fewer, count = re.subn(
        rf"(ROOMS = \[\n{re.escape(first)}).*?\n\]\n", r"\1]\n", setup, flags=re.S
    )
    assert count == 1
    (sources / "setup.py").write_text(fewer)
    tool("build", "--wheel", "--no-isolation", "--outdir", folder, cwd=sources, **variables)
    (wheel,) = folder.glob("*.whl")
    return wheel


def installation_of(wheel: Path, folder: Path) -> Installation:
    """Install a wheel in a new environment; the requirements are those of this Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    tool(
        "pip", "--python", str(folder), "install", "-q", "--no-deps", "--no-index",
        "--no-compile", wheel, cwd=folder,
    )  # fmt: skip
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "requirements.pth").write_text(
        "".join(f"{path}\n" for path in sys.path if path.endswith("site-packages"))
    )
    return Installation(folder)
