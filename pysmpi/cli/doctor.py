"""`pysmpi doctor`: whether this installation is complete and fast, and what to do if not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

import click

from pysmpi.cli.echo import echo
from pysmpi.kernel import engine
from pysmpi.python import facts
from pysmpi.python.extras import EXTRAS, installs
from pysmpi.python.installed import compiled_elsewhere, environment
from pysmpi.python.records import record
from pysmpi.version import HOME, __version__

HELLO = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
assert comm.allreduce(comm.rank) == 6 and comm.size == 4
"""


@record
class Condition:
    """The result of one check, and the remedy if it is not `ok`."""

    subject: str
    state: Literal["ok", "note", "wrong"]
    text: str
    remedy: str = ""


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print the conditions as JSON.")
def command(as_json: bool) -> int:
    """Check this installation: its packages, its speed, and a run of four ranks.

    The exit status is 1 if something that pysmpi needs is missing or does not work.
    """
    conditions = [condition for check in CHECKS for condition in check()]
    if as_json:
        echo(json.dumps([asdict(condition) for condition in conditions], indent=2))
    else:
        for condition in conditions:
            echo(f"{condition.state:5}  {condition.subject}: {condition.text}")
            if condition.remedy:
                echo(f"       {condition.remedy}")
    return 1 if any(condition.state == "wrong" for condition in conditions) else 0


def _this_package() -> Iterator[Condition]:
    python = ".".join(str(part) for part in sys.version_info[:3])
    yield Condition("pysmpi", "ok", f"{__version__} in {HOME}, with Python {python}")
    other = compiled_elsewhere()
    if not engine.__file__.endswith(".py"):
        yield Condition("kernel", "ok", "compiled")
    elif other is not None:
        yield Condition(
            "kernel", "note", f"interpreted; that of {other} is compiled",
            "Run pysmpi from another directory: Python takes the one in the current directory.",
        )  # fmt: skip
    else:
        yield Condition(
            "kernel", "note", "interpreted: right, but several times slower",
            "Install a C compiler and the headers of Python (gcc and python3-dev in Debian), then "
            "install pysmpi again.",
        )  # fmt: skip
    missing = [name for name in parts_in_c() if not _has(name)]
    if missing:
        yield Condition(
            "parts in C", "note", f"missing: {', '.join(missing)}",
            "Without them --fold is not available, ranks share assignments in shared modules, "
            "debuggers and profilers in C do not tell ranks apart, and large messages take longer "
            "to copy.",
        )  # fmt: skip
    else:
        yield Condition("parts in C", "ok", "compiled")
    if sys.platform != "linux":
        yield Condition(
            "parts for Linux", "note", "not on this system",
            "Without Linux, --fold is not available, and a rank that waits in a function of C "
            "holds the run without a report.",
        )  # fmt: skip


# As in setup.py.
IN_C = (
    "pysmpi.explore.audit_events",
    "pysmpi.mpi.base.exporter", "pysmpi.mpi.base.handle_fields", "pysmpi.mpi.base.memcopy",
    "pysmpi.mpi.c_interface.conversions",
    "pysmpi.isolation.kinds.attribute_hooks", "pysmpi.isolation.kinds.trace_hooks",
    "pysmpi.isolation.dict_versions",
    "pysmpi.isolation.frame_stacks",
    "pysmpi.python.dictionary_search",
)  # fmt: skip
IN_C_ON_LINUX = (
    "pysmpi.abi.engine", "pysmpi.abi.fortran", "pysmpi.abi.openmpi", "pysmpi.abi.standard",
    "pysmpi.explore.rewinding", "pysmpi.folding.hooks", "pysmpi.job.huge_pages",
    "pysmpi.waiting.stalls.watch",
)  # fmt: skip


def parts_in_c() -> tuple[str, ...]:
    """The modules in C that a complete installation has on this system."""
    return (*IN_C, *IN_C_ON_LINUX) if sys.platform == "linux" else IN_C


def _has(module: str) -> bool:
    path = os.path.join(os.path.dirname(HOME), *module.split("."))
    return any(os.path.exists(path + suffix) for suffix in EXTENSION_SUFFIXES)


def _facts() -> Iterator[Condition]:
    false = facts.false_facts()
    for name, reason in false.items():
        fact = facts.FACTS[name]
        yield Condition(
            name, "note", f"off ({reason}), expected: {fact.text}", f"So {fact.without}.",
        )  # fmt: skip
    if not false:
        yield Condition(
            "insides of Python and numpy", "ok", f"as expected, in {len(facts.FACTS)} tests"
        )


def _packages() -> Iterator[Condition]:
    """The requirements of pysmpi, and its extras."""
    try:
        lines = requires("pysmpi") or []
    except PackageNotFoundError:
        yield Condition("packages", "note", "pysmpi is imported from sources, not installed")
        return
    extras: dict[str, list[str]] = {}
    needed = []
    for line in lines:
        name = "".join(c if c.isalnum() or c in "-_." else " " for c in line).split()[0]
        if "extra ==" not in line:
            needed.append(name)
        else:
            extra = line.rpartition("extra ==")[2].strip(" '\"")
            extras.setdefault(extra, []).append(name)
    missing = [name for name in needed if _version(name) is None]
    if missing:
        yield Condition(
            "packages", "wrong", f"missing: {', '.join(missing)}",
            f"{sys.executable} -m pip install {' '.join(missing)}",
        )  # fmt: skip
    else:
        shown = ", ".join(f"{name} {_version(name)}" for name in needed)
        yield Condition("packages", "ok", shown)
    for extra, names in extras.items():
        if extra in EXTRAS:
            purpose = EXTRAS[extra].purpose
            if any(_version(name) is None for name in names):
                yield Condition(
                    f"extra {extra}", "note", f"not installed: {purpose}",
                    f"{sys.executable} -m {installs(extra)}",
                )  # fmt: skip
            else:
                yield Condition(f"extra {extra}", "ok", purpose)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _libraries() -> Iterator[Condition]:
    """The private containers of libraries whose contents each rank has for itself."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", "from pysmpi.job import probes; probes.print_containers()"],
        env=environment(), capture_output=True, text=True,
    )  # fmt: skip
    first, *missing = done.stdout.split("\n")
    missing = [line for line in missing if line]
    if missing:
        yield Condition(
            "options of libraries", "note", f"not there: {', '.join(missing)}",
            "Ranks share these options and registries. Please report the version of the library.",
        )  # fmt: skip
    elif first:
        names = ", ".join(first.split())
        yield Condition("options of libraries", "ok", f"each rank has its own, in {names}")


def _computer() -> Iterator[Condition]:
    from pysmpi.time.host_speed import cache_file

    file = cache_file()
    folder = file.parent
    while not folder.exists():
        folder = folder.parent
    if file.exists():
        yield Condition("speed of this computer", "ok", f"measured, in {file}")
    elif os.access(folder, os.W_OK):
        yield Condition(
            "speed of this computer", "note", f"not measured yet; the first run writes {file}",
            "pysmpi calibrate host measures it on a quiet computer.",
        )  # fmt: skip
    else:
        yield Condition(
            "speed of this computer", "note", f"{file} cannot be written: each run measures again",
            "Set XDG_CACHE_HOME to a directory that can be written.",
        )  # fmt: skip
    if sys.platform == "linux":
        yield _memory()


def _memory() -> Condition:
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        return Condition(
            "memory", "note", f"the address space of a process is limited to {limit / 1e9:.1f} GB",
            "Jobs of very many ranks need more: ulimit -v unlimited",
        )  # fmt: skip
    try:
        mappings = int(Path("/proc/sys/vm/max_map_count").read_text())
    except (OSError, ValueError):
        return Condition("memory", "ok", "no limit")
    return Condition("memory", "ok", f"no limit, {mappings:,} mappings a process")


def _run() -> Iterator[Condition]:
    with tempfile.TemporaryDirectory(prefix="pysmpi-doctor-") as folder:
        done = subprocess.run(
            [sys.executable, "-m", "pysmpi", "run", "-n", "4", "--compute", "none", "-c", HELLO],
            cwd=folder, env=environment(), capture_output=True, text=True,
        )  # fmt: skip
    if done.returncode == 0:
        yield Condition("a run of four ranks", "ok", "right")
    else:
        last = (done.stderr.strip().splitlines() or ["no output"])[0]
        yield Condition(
            "a run of four ranks", "wrong", f"status {done.returncode}: {last}",
            "Please report this with the output of pysmpi doctor --json.",
        )  # fmt: skip


CHECKS: tuple[Callable[[], Iterator[Condition]], ...] = (
    _this_package,
    _facts,
    _packages,
    _libraries,
    _computer,
    _run,
)
