"""Runs the tests of a package on a broken copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.mutate.rooms import Place, own_tests

HANG = 240  # s, for one test, on a computer that may do other things as well
FIRST = 3  # files that run alone before the others are even read
SUBREAPER = Path(__file__).with_name("subreaper.py")
NOTHING = 5  # pytest's exit status if it has selected no test


@dataclass(frozen=True)
class Verdict:
    """The verdict of the tests about a broken place."""

    place: Place
    result: str  # "killed", "hangs" (a test), "survived", "unfinished" (in the time)
    test: str  # that failed
    seconds: float  # of the processor


class Copy:
    """A copy of the project, one for each process that breaks places."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = folder
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            check=True,
        ).stdout.decode()
        compiled = [path.relative_to(root).as_posix() for path in (root / "pysmpi").rglob("*.so")]
        compiled += [path.name for path in root.glob("*.so")]
        for name in [*filter(None, listing.split("\0")), *compiled]:
            if (root / name).is_file():
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, target, follow_symlinks=False)
        self._sound: set[str] = set()  # tests that pass if nothing is broken
        self._unsound: set[str] = set()  # and that fail, or files that cannot be read
        self._changes = 0
        self._stopped = False

    def try_place(self, place: Place, seconds: float) -> Verdict:
        """Break it, run the tests of its package until one fails, and put it right again.

        They may use the processor for `seconds`.
        """
        path = self.root / place.path
        source = path.read_bytes()
        tests = own_tests(self.root, place)
        result, test, used = "survived", "", 0.0
        for some in (tests[:FIRST], tests[FIRST:]):
            while result == "survived" and (some := self._readable(some)):
                self._write(path, place.mutation.applied(source))
                try:
                    result, test, spent = self._run(place, some, seconds - used)
                finally:
                    self._write(path, source)
                used += spent
                if result == "killed" and not test:  # the process has ended
                    sound = self._run(place, [*some, "--collect-only"], seconds)[0]
                    if sound != "survived":
                        raise RuntimeError(f"without a break, pytest cannot read {some}")
                if not test or test in self._sound:
                    break
                alone = [test] if "::" in test else [test, "--collect-only"]
                if self._run(place, alone, seconds)[0] == "survived":
                    self._sound.add(test)
                else:
                    self._unsound.add(test)  # it says nothing about the place
                    result, test = "survived", ""
                    continue
                break
        return Verdict(place, result, test, used)

    def _readable(self, tests: list[str]) -> list[str]:
        """Those that are not known to be files which pytest cannot read."""
        return [name for name in tests if name not in self._unsound]

    def stop(self) -> None:
        """End the trial that runs in another thread."""
        self._stopped = True

    def _write(self, path: Path, source: bytes) -> None:
        path.write_bytes(source)
        self._changes += 1
        # The cache of the compiler compares whole seconds and the size.
        moment = time.time() - 86400 + 2 * self._changes
        os.utime(path, (moment, moment))
        for cached in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            cached.unlink(missing_ok=True)

    def _run(self, place: Place, tests: list[str], seconds: float) -> tuple[str, str, float]:
        environment = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
        environment["PYTHONPATH"] = str(self.root)
        module = (self.root / place.path).with_suffix("")
        if any(module.parent.glob(f"{module.name}.*.so")):
            environment["PYSMPI_INTERPRETED"] = "1"  # the compiled one is not broken
        command = [sys.executable, str(SUBREAPER), sys.executable, "-m", "pytest"]
        command += ["-x", "-q", "-rfE", "--tb=no", "-p"]
        command += ["no:cacheprovider", "-o", f"faulthandler_timeout={HANG}", *tests]
        command += [f"--deselect={test}" for test in sorted(self._unsound)]
        with tempfile.TemporaryFile() as output:
            process = psutil.Popen(
                command,
                cwd=self.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            spent, ended = 0.0, False
            try:
                while not (ended or self._stopped) and spent < seconds:
                    with suppress(psutil.TimeoutExpired):
                        process.wait(timeout=0.5)
                        ended = True
                    spent = max(spent, _processor_seconds(process))
            finally:
                with suppress(psutil.NoSuchProcess):
                    process.terminate()
                process.wait()
            output.seek(0)
            text = output.read().decode(errors="replace")
        if not ended:
            return "unfinished", "", spent
        if process.returncode in (0, NOTHING):
            return "survived", "", spent
        failed = re.search(
            r"^(?:FAILED|ERROR) (\S+\.py(?:::[^\n]*?)?)(?: - .*)?$", text, re.MULTILINE
        )
        if failed is None and "Timeout (0:" in text:
            return "hangs", "", spent
        return "killed", failed[1] if failed else "", spent


def _processor_seconds(process: psutil.Popen) -> float:
    """The processor time of a process and its descendants (s)."""
    total = 0.0
    with suppress(psutil.Error):
        for one in [process, *process.children(recursive=True)]:
            with suppress(psutil.Error):
                times = one.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
    return total
