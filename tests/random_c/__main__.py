"""`python -m tests.random_c [NUMBER] [--seed SEED] [--abi NAME...]`: random C beside MPICH.

The programs are translations of those of `tests/differential/test_random_programs.py`, some in one
executable. MPICH runs each executable, and pysmpi runs it and those for the other binary
interfaces. Prints each difference. The exit status is 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pysmpi.abi.interfaces import INTERFACES
from pysmpi.cli.cc import line
from tests.random_c.translation import translated

HERE = Path(__file__).parent
PARTS = ("common", "messages", "collectives", "chapters")
JOB = 25
RANKS = (3, 4, 5, 2)
#: The settings of pysmpi under which data must be the same.
SETTINGS = (
    ("--compute", "none"),
    ("--compute", "none", "--selector", "ompi"),
    ("--compute", "native"),
    ("--compute", "none", "--schedule", "random", "--seed", "7"),
    ("--compute", "none", "--selector", "mpich4", "--model", "loggp"),
)
Programs = list[dict[str, Any]]


class Compiler:
    """Executables for a binary interface: that of MPICH is compiled as MPICH's `mpicc` does."""

    def __init__(self, interface: str, folder: Path) -> None:
        self.interface = interface
        self.folder = folder / interface
        self.folder.mkdir()
        self.objects = [self._object(HERE / f"{part}.c") for part in PARTS]

    def _run(self, words: list[str]) -> None:
        words = ["-g", "-O1", "-w", f"-I{HERE}", *words]
        if self.interface == "mpich":
            prefix = Path(sys.prefix)
            link = [] if "-c" in words else ["-pie", f"-L{prefix / 'lib'}", "-lmpi",
                                             f"-Wl,-rpath,{prefix / 'lib'}"]  # fmt: skip
            command = ["cc", "-fPIE", f"-I{prefix / 'include'}", *words, *link]
        else:
            command = line("cc", ["--abi", self.interface, *words])
        subprocess.run(command, check=True)

    def _object(self, source: Path) -> str:
        target = self.folder / f"{source.stem}.o"
        self._run(["-c", str(source), "-o", str(target)])
        return str(target)

    def executable(self, text: str) -> Path:
        """The executable of some translated programs."""
        source, target = self.folder / "programs.c", self.folder / "programs"
        source.write_text(text)
        self._run([str(source), *self.objects, "-o", str(target)])
        return target


def observed(command: list[str], ranks: int, name: Path) -> list[list[str]]:
    """The lines of each rank."""
    done = subprocess.run(
        [*command, str(name)], capture_output=True, text=True, timeout=600, errors="replace",
        cwd=name.parent, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")
    return [Path(f"{name}.{rank}").read_text().split("\n")[1:] for rank in range(ranks)]


def differences(
    programs: Programs, ours: list[list[str]], theirs: list[list[str]]
) -> Iterator[tuple[int, str]]:
    """Each program that differs, and where."""
    seen = set()
    for rank, (mine, real) in enumerate(zip(ours, theirs, strict=True)):
        assert len(mine) == len(real)
        for mine_line, real_line in zip(mine, real, strict=True):
            if mine_line == real_line:
                continue
            number, step, _ = real_line.split(" ", 2)
            if int(number) not in seen:
                seen.add(int(number))
                program = programs[int(number)]
                at = [*program["comms"], *program["steps"]][int(step)]
                yield (
                    int(number),
                    f"rank {rank} at {json.dumps(at)}:\npysmpi {mine_line[:600]}\n"
                    f"MPICH  {real_line[:600]}\nof {json.dumps(program)}",
                )


class Comparison:
    """Programs under MPICH and under pysmpi."""

    def __init__(self, folder: Path, interfaces: list[str]) -> None:
        self.folder = folder
        names = dict.fromkeys(("mpich", *interfaces))
        self.compilers = {name: Compiler(name, folder) for name in names}
        self.interfaces = interfaces

    def compare(self, programs: Programs, ranks: int, settings: tuple[str, ...]) -> list[str]:
        """The differences of these programs in all interfaces."""
        text = translated(programs)
        mpiexec = shutil.which("mpiexec") or "mpiexec"
        real = self.compilers["mpich"].executable(text)
        theirs = observed([mpiexec, "-n", str(ranks), str(real)], ranks, self.folder / "real")
        simulated = [sys.executable, "-m", "pysmpi", "run", "-q", "-n", str(ranks), *settings]
        found = []
        for interface in self.interfaces:
            program = real if interface == "mpich" else (
                self.compilers[interface].executable(text)
            )  # fmt: skip
            where = f"{interface}, {ranks} ranks, {' '.join(settings)}"
            try:
                ours = observed([*simulated, str(program)], ranks, self.folder / "ours")
            except RuntimeError as error:
                found.append(f"{where}: {error}")
                continue
            found += [f"{where}: {text}" for _, text in differences(programs, ours, theirs)]
        return found


def main() -> int:
    """Compare many programs."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_c")
    parser.add_argument("number", nargs="?", type=int, default=500, help="of programs")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--abi", nargs="+", choices=list(INTERFACES), default=list(INTERFACES))
    given = parser.parse_args()
    sys.path.insert(0, str(HERE.parent / "differential"))
    from test_random_programs import draw_programs

    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    compared = differ = 0
    with tempfile.TemporaryDirectory() as place:
        comparison = Comparison(Path(place), given.abi)
        for job in range(-(-given.number // JOB)):
            programs = draw_programs(min(JOB, given.number - compared), given.seed + job)
            found = comparison.compare(
                programs, RANKS[job % len(RANKS)], SETTINGS[job % len(SETTINGS)]
            )
            compared += len(programs)
            differ += len(found)
            for text in found:
                print(f"job {job} of seed {given.seed}, {text}", flush=True)
            print(f"seed {given.seed}: {compared} programs, {differ} differences", flush=True)
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main())
