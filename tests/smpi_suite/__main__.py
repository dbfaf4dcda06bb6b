"""`python -m tests.smpi_suite [NAME...]`: SMPI's own tests and examples in C.

Each script is carried out with `pysmpi run` in place of `smpirun`. The lines of the programs are
compared with those of the script, in any order, with the simulated times in messages of SimGrid's
log that the program or a call of MPI prints. Other messages of SimGrid are left out. The exit
status is 1 if a run differs.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from pysmpi.cli.cc import line
from pysmpi.cli.fc import line as fortran_line
from tests.mpich_suite.source import simgrid
from tests.smpi_suite.expectations import DIFFERENT
from tests.smpi_suite.scripts import Command, Run, commands, run_of

HERE = Path(__file__).parent
FOLDERS = ("teshsuite/smpi", "examples/smpi")
# Messages that only SimGrid prints: they have a host, or a time and a category.
_LOG = re.compile(
    r"^\(.*@.*\) |^\[\s*\d+\.\d+\] (\[(smpi|xbt|mc)\w*/|\(\d+:maestro@\))"
    r"|^\[[^\]]*\] \[smpi_(?!mpi/|test/)\w+/"
)
_HEADERS = ("simgrid/actor.h", "simgrid/host.h", "simgrid/modelchecker.h", "xbt/log.h")


class Suite:
    """The programs of a script, compiled for pysmpi, and for SMPI where times are compared."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.source, self.folder = source, folder
        self.platforms = source / "examples" / "platforms"
        for name in _HEADERS:
            (folder / "include" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "include" / name).touch()

    def file(self, script: Path, name: str) -> Path:
        """A file that a script names by some path."""
        base = Path(name).name
        for place in (script.parent, script.parent.parent, self.platforms):
            if (place / base).exists():
                return place / base
        return script.parent / base

    def hosts(self, script: Path, run: Run) -> Path:
        """The hosts of a run: smpirun begins again with the first where there are too few."""
        file = self.file(script, run.hostfile)
        if not file.exists():
            return file
        hosts = []
        for word in file.read_text().split():
            name, _, number = word.partition(":")
            hosts += [name] * int(number or 1)
        if not hosts or len(hosts) >= (run.ranks or 0):
            return file
        target = self.folder / "hosts"
        target.write_text("".join(f"{hosts[i % len(hosts)]}\n" for i in range(run.ranks or 0)))
        return target

    def source_of(self, script: Path, program: str) -> Path | None:
        """The source of a program."""
        name = Path(program).name
        for base in (name, name.removeprefix("smpi_")):
            for place in (script.parent, script.parent.parent / base.replace("_", "-")):
                for end in (".c", ".f90"):
                    if (place / f"{base}{end}").exists():
                        return place / f"{base}{end}"
                    dashed = place / f"{base.replace('_', '-')}{end}"
                    if dashed.exists():
                        return dashed
        return None

    def compiled(self, source: Path, calls: bool) -> Path | str:
        """The program of a source, or why there is none; `calls` asks for a log of its calls."""
        target = self.folder / f"{source.stem}{'.calls' if calls else ''}"
        if target.exists():
            return target
        # A disk of SimGrid is a folder here.
        disk = self.folder / "scratch"
        disk.mkdir(exist_ok=True)
        text = source.read_text().replace('"/scratch/', f'"{disk}/')
        copy = self.folder / source.name
        copy.write_text(text)
        words = ["-g", "-w", "-O0", f"-I{source.parent}", str(copy), "-lm", "-o", str(target)]
        if source.suffix == ".f90":
            command = fortran_line("fc", words)
        else:
            shim = [f"-I{self.folder / 'include'}", "-include", str(HERE / "simgrid.h")]
            command = line("cc", [*shim, *(["-DTESTS_CALLS"] if calls else []), *words])
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder)
        if done.returncode:
            errors = [
                each for each in done.stderr.splitlines() if "error" in each or "undef" in each
            ]
            return f"cannot be compiled: {(errors or ['?'])[0].rpartition('error: ')[2]}"
        return target

    def outcome(self, command: Command, run: Run, program: Path) -> tuple[int, str]:
        """Carry out a run with pysmpi: the exit status, and the output."""
        words = ["-n", str(run.ranks)] if run.ranks is not None else []
        if run.hostfile:
            words += ["--hostfile", str(self.hosts(command.script, run))]
        settings = [word for each in run.settings for word in ("--cfg", each)]
        done = subprocess.run(
            [sys.executable, "-m", "pysmpi", "run", "-q", *words,
             "--platform", str(self.file(command.script, run.platform)), *settings,
             str(program), *run.arguments],
            capture_output=True, text=True, errors="replace", cwd=self.folder, timeout=600,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr


def difference(expected: list[str], output: str) -> str:
    """The first lines that are only in one of the outputs; empty if there is none."""

    def lines(some: list[str]) -> list[str]:
        return sorted(line.rstrip() for line in some if not _LOG.match(line) and line.strip())

    wanted, got = lines(expected), lines(output.splitlines())
    missing, more = list(wanted), []
    for text in got:
        if text in missing:
            missing.remove(text)
        else:
            more.append(text)
    if not missing and not more:
        return ""
    return f"{len(missing)} lines missing: {missing[:2]}, {len(more)} more: {more[:3]}"


def main() -> int:
    """Carry out the scripts; the exit status is 1 if one has another outcome than expected."""
    parser = argparse.ArgumentParser(prog="python -m tests.smpi_suite")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="only scripts with it in their path"
    )
    parser.add_argument("--verbose", action="store_true", help="print the outputs that differ")
    given = parser.parse_args()
    source = simgrid()
    equal = other = wrong = 0
    with tempfile.TemporaryDirectory() as place:
        suite = Suite(source, Path(place))
        for script in sorted(each for name in FOLDERS for each in (source / name).glob("*/*.tesh")):
            label = str(script.relative_to(source))
            if given.names and not any(name in label for name in given.names):
                continue
            for command in commands(script):
                run = run_of(command.words)
                where = f"{label}:{command.line}"
                if run is None:
                    continue
                reason = run.reason
                file = None if reason else suite.source_of(script, run.program)
                if not reason and file is None:
                    reason = f"its program {Path(run.program).name} is no program in C"
                program = suite.compiled(file, run.calls) if file else reason
                if isinstance(program, str):
                    other += 1
                    print(f"{where}: {program}", flush=True)
                    continue
                status, output = suite.outcome(command, run, program)
                problem = difference(command.output, output) if command.checked else ""
                if bool(status) != bool(command.status):
                    problem = f"exit status {status}, expected {command.status}: {output[-300:]}"
                if not problem:
                    equal += 1
                    continue
                known = DIFFERENT.get(where.partition(":")[0])
                wrong += known is None
                print(f"{where}: {known or problem}", flush=True)
                if given.verbose:
                    print(" ".join(command.words), output, sep="\n", flush=True)
    print(f"{equal} runs equal, {wrong} differ, {other} are not for pysmpi")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
