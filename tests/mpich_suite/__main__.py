"""`python -m tests.mpich_suite [DIRECTORY...]`: MPICH's tests in C, compiled for MPICH.

Prints each test that does not end as expected. With --mpich, MPICH runs the tests that fail, and
those that it fails too are no errors. With --abi, the tests are compiled for another binary
interface, with the header of `pysmpi cc` or, with --header, with one of that MPI library. With
--sanitize, the entry points are compiled with gcc's AddressSanitizer, which also sees what pysmpi
copies to and from the memory of the tests.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from pysmpi import abi
from pysmpi.abi.interfaces import FILES, INTERFACES, file_of
from pysmpi.abi.interfaces import MPICH as MPICH_LIBRARY
from pysmpi.abi.table import entry_points
from pysmpi.cli.cc import include
from tests.mpich_suite.expectations import KNOWN_FAILURES
from tests.mpich_suite.source import DIRECTORIES, Case, cases, suite

ROOT = Path(__file__).resolve().parents[2]
ABI = Path(abi.__file__).parent
SANITIZER = "ERROR: AddressSanitizer"
MPICH = Path(sys.prefix)
DEFINED = [f"-DHAVE_{name}_H" for name in ("STDLIB", "STRING", "STDIO", "UNISTD", "STRINGS")]


class Programs:
    """The compiled tests, for a binary interface."""

    def __init__(
        self, source: Path, target: Path, interface: str = "mpich", header: Path | None = None
    ) -> None:
        self.source, self.target = source, target
        target.mkdir()
        if interface == "mpich":
            library, header = MPICH / "lib", header or MPICH / "include"
            self.library = [f"-L{library}", "-lmpi", "-lm", f"-Wl,-rpath,{library}"]
        else:
            header = header or include(interface)
            name = INTERFACES[interface].c_library
            self.library = [str(file_of(name)), "-lm", "-Wl,--allow-shlib-undefined"]
        self.flags = [
            "-w", "-g", "-fPIE", "-DHAVE_CONFIG_H", *DEFINED, f"-I{source / 'include'}",
            f"-I{header}",
        ]  # fmt: skip
        self.objects: list[str] = []
        for name in ("mtest", "mtest_datatype", "mtest_datatype_gen"):
            file = source / "util" / f"{name}.c"
            made = target / f"{file.stem}.o"
            if (
                subprocess.run(["cc", "-c", *self.flags, str(file), "-o", str(made)]).returncode
                == 0
            ):
                self.objects.append(str(made))

    def program(self, case: Case) -> Path | None:
        """The program of a test; None if it cannot be compiled."""
        made = self.target / f"{case.directory}.{case.name}"
        if made.exists():
            return made
        file = self.source / case.directory / f"{case.name}.c"
        words = ["cc", *self.flags, "-pie", "-o", str(made), str(file), *self.objects]
        done = subprocess.run([*words, *self.library], capture_output=True, check=False)
        return made if done.returncode == 0 else None


def sanitized(place: Path) -> tuple[list[str], dict[str, str]]:
    """A command that runs pysmpi with entry points under AddressSanitizer, and its variables."""
    target = place / "engine.so"
    # Greenlets copy parts of the stack, so the stack has no red zones.
    flags = ["-fsanitize=address", "--param", "asan-stack=0", "-fno-omit-frame-pointer", "-g"]
    others = {"entries", *FILES.values()}
    sources = [str(each) for each in ABI.glob("*.c") if each.stem not in others]
    sources.append(str(place / "entries.c"))
    (place / "entries.c").write_text(entry_points())
    subprocess.run(
        ["gcc", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", *flags,
         "-I", sysconfig.get_paths()["include"], "-I", str(ABI), f"-Wl,-soname,{MPICH_LIBRARY}",
         *sources, "-o", str(target)],
        check=True,
    )  # fmt: skip
    library = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    variables = {
        "LD_PRELOAD": library.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:detect_stack_use_after_return=0",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(ROOT),
    }
    return [sys.executable, "-m", "tests.mpich_suite.sanitized", str(target)], variables


def passes(
    command: list[str], seconds: float, place: Path, variables: dict[str, str] | None = None
) -> tuple[bool, str]:
    """Whether a test reports no errors, and its last lines, or the report of AddressSanitizer."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, cwd=place, errors="replace",
            stdin=subprocess.DEVNULL, env={**os.environ, **(variables or {})},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False, f"took more than {seconds:g} s"
    text = done.stdout + done.stderr
    if SANITIZER in text:
        return False, text[text.index(SANITIZER) :]
    return done.returncode == 0 and "no errors" in text.lower(), "\n".join(text.splitlines()[-3:])


def main() -> int:
    """Run the tests; the exit status is 1 if one does not end as expected."""
    parser = argparse.ArgumentParser(prog="python -m tests.mpich_suite")
    parser.add_argument("directories", nargs="*", default=DIRECTORIES, metavar="DIRECTORY")
    parser.add_argument("--mpich", action="store_true", help="let MPICH run the tests that fail")
    parser.add_argument("--abi", choices=list(INTERFACES), default="mpich")
    parser.add_argument("--header", type=Path, metavar="DIRECTORY", help="that of mpi.h")
    parser.add_argument("--only", help="only the tests of this name")
    parser.add_argument("--seconds", type=float, default=300.0, help="for one test")
    parser.add_argument("--sanitize", action="store_true", help="run under AddressSanitizer")
    given = parser.parse_args()
    if given.sanitize and given.abi != "mpich":
        parser.error("--sanitize: the entry points of MPICH's interface serve the others, too")
    source = suite()
    ran = failed = wrong = reports = 0
    with tempfile.TemporaryDirectory() as place:
        programs = Programs(source, Path(place) / given.abi, given.abi, given.header)
        reference = programs
        if given.mpich and given.abi != "mpich":
            reference = Programs(source, Path(place) / "reference")
        launcher, variables = [sys.executable, "-m", "pysmpi"], {}
        if given.sanitize:
            launcher, variables = sanitized(Path(place))
        for case in (case for name in given.directories for case in cases(source, name)):
            if given.only and case.name != given.only:
                continue
            program = programs.program(case)
            if program is None:
                print(f"{case}: cannot be compiled", flush=True)
                continue
            ran += 1
            words = ["-n", str(case.ranks)]
            ours = [*launcher, "run", "-q", "--compute", "none", *words]
            good, text = passes(
                [*ours, str(program), *case.arguments], given.seconds, Path(place), variables
            )
            reports += SANITIZER in text
            known = str(case) in KNOWN_FAILURES and SANITIZER not in text
            if good:
                wrong += known
                if known:
                    print(f"{case}: passes, but is a known failure", flush=True)
                continue
            failed += 1
            if known:
                continue
            program = reference.program(case) if given.mpich else None
            if program is not None:
                command = [str(MPICH / "bin" / "mpiexec"), *words, str(program), *case.arguments]
                real, real_text = passes(command, given.seconds, Path(place))
                if not real:
                    print(f"{case}: fails with MPICH too: {real_text}", flush=True)
                    continue
            wrong += 1
            print(f"{case}: {text}", flush=True)
    found = f", {reports} reports of AddressSanitizer" if given.sanitize else ""
    print(f"{ran} tests: {failed} fail, {wrong} not as expected{found}")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
