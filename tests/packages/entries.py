"""The list of published packages: YAML files in `lists/`, read strictly.

A file of the list is a sequence of entries. An entry names a package, its version, its environment,
and its runs:

    - package: sympy              # the name on PyPI
      version: "1.14.0"
      field: algebra              # a heading of the table
      environment: science        # entries of one environment are installed together
      requires: [pytest>=8]       # what else to install, as pip understands it
      build: false                # whether pip may build from source what has no wheel
      source: false               # unpack the package's source distribution; runs start in it
      quick: false                # one of the ten that run with the tests
      unequal: ...                # why pysmpi's result differs; the run must differ then
      says: REGEX                 # and what pysmpi must say of it, in one line
      notes: ...                  # a remark for the table
      runs:
        - program: programs/primes.py       # relative to tests/packages, or, if there is no
                                            # such file, to where the run starts
        - module: sympy.benchmarks.bench    # python -m
        - code: print(1)                    # python -c
        - pytest: [--pyargs, sympy.ntheory] # arguments of pytest; compared test by test

A run also takes:

    args: [..]           arguments of the program; `$HERE` is tests/packages
    ranks: 4
    timeout: 300         seconds of wall time, each side
    status: 0            the exit status that both sides must have; `nonzero`: any but 0
    expect: REGEX        must be found in what MPICH's ranks print (a list: each of them)
    passes: 1            for pytest: how many tests must pass in each rank
    tolerance: 0         relative difference allowed between numbers at the same place
    absolute: 0          absolute difference allowed
    only: [REGEX, ...]   compare only lines that match one of these
    ignore: [REGEX, ...] do not compare lines that match one of these
    replace: [NAME, [REGEX, TEXT], ...]  change lines before they are compared; NAME is one of
                         `RULES` in compare.py
    files: [GLOB, ...]   text files that the program writes, to be compared too
    directory: PATH      where in the source distribution the run starts
    environ: {NAME: VALUE}
"""

from __future__ import annotations

import re
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
LISTS = HERE / "lists"
HOW = ("program", "module", "code", "pytest")


class ListError(Exception):
    """A mistake in a file of the list; the text names the file, the entry and the key."""


@dataclass(frozen=True)
class Run:
    """One program with its arguments, and how its results are compared."""

    program: str | None = None
    module: str | None = None
    code: str | None = None
    pytest: list[str] | None = None
    args: list[str] = field(default_factory=list)
    ranks: int = 4
    timeout: int = 300
    status: int | str = 0
    expect: list[str] = field(default_factory=list)
    passes: int = 1
    tolerance: float = 0.0
    absolute: float = 0.0
    only: list[str] = field(default_factory=list)
    ignore: list[str] = field(default_factory=list)
    replace: list[Any] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    directory: str = "."
    environ: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """One package of the list."""

    package: str
    version: str
    field: str
    environment: str
    runs: list[Run]
    list: str
    requires: list[str]
    build: bool = False
    source: bool = False
    quick: bool = False
    unequal: str | None = None
    says: str | None = None
    notes: str | None = None

    @property
    def requirements(self) -> list[str]:
        """The needs of this entry in its environment."""
        return [f"{self.package}=={self.version}", *self.requires]


def entries(folder: Path = LISTS) -> list[Entry]:
    """All entries of the list, in the order of the files and within them."""
    found: list[Entry] = []
    for path in sorted(folder.glob("*.yaml")):
        try:
            rows = yaml.safe_load(path.read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            raise ListError(f"{path.name}: {error}") from None
        if not isinstance(rows, list):
            raise ListError(f"{path.name}: expected a sequence of entries")
        found += [_entry(row, f"{path.name}, entry {i + 1}", path.stem) for i, row in _each(rows)]
    names: set[str] = set()
    for entry in found:
        if entry.package in names:
            raise ListError(f"{entry.list}.yaml: {entry.package} is listed twice")
        names.add(entry.package)
    return found


def _each(rows: list[Any]) -> list[tuple[int, Any]]:
    return list(enumerate(rows))


def _entry(row: Any, where: str, name: str) -> Entry:
    if not isinstance(row, dict):
        raise ListError(f"{where}: expected keys and values, got {row!r}")
    where = f"{where} ({row.get('package', 'no package')})"
    values = {"requires": [], **row}
    _check(values, Entry, where, omit={"list"})
    runs = values.pop("runs")
    if not isinstance(runs, list) or not runs:
        raise ListError(f"{where}: runs: expected a sequence of runs")
    if not isinstance(values["version"], str):
        raise ListError(f"{where}: version: expected text in quotes, got {values['version']!r}")
    if values.get("says") is not None and not values.get("unequal"):
        raise ListError(f"{where}: says: only an entry that is unequal has it")
    read = [_run(run, f"{where}, run {i + 1}") for i, run in _each(runs)]
    return Entry(**values, runs=read, list=name)


def _run(row: Any, where: str) -> Run:
    if not isinstance(row, dict):
        raise ListError(f"{where}: expected keys and values, got {row!r}")
    values = dict(row)
    _check(values, Run, where)
    if sum(name in values for name in HOW) != 1:
        raise ListError(f"{where}: expected one of {', '.join(HOW)}")
    if isinstance(values.get("expect"), str):
        values["expect"] = [values["expect"]]
    for key in ("args", "pytest"):
        if key in values:
            values[key] = [str(part) for part in values[key]]
    values["environ"] = {key: str(text) for key, text in values.get("environ", {}).items()}
    for key in ("expect", "only", "ignore"):
        for pattern in values.get(key, []):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ListError(f"{where}: {key}: {pattern!r}: {error}") from None
    return Run(**values)


def _check(values: dict[str, Any], kind: type, where: str, omit: set[str] = frozenset()) -> None:  # type: ignore[assignment]
    """That a mapping has the keys of a dataclass, of the right types."""
    known = {one.name: one for one in fields(kind) if one.name not in omit}
    for key in values:
        if key not in known:
            raise ListError(f"{where}: unknown key {key!r}; there are {', '.join(known)}")
    for name, one in known.items():
        needed = one.default is MISSING and one.default_factory is MISSING
        if needed and name not in values:
            raise ListError(f"{where}: no {name!r}")
        sort = {"list": list, "dict": dict, "bool": bool, "int": int}.get(
            str(one.type).split("[")[0]
        )
        if name in values and sort and not isinstance(values[name], sort) and name != "expect":
            raise ListError(f"{where}: {name}: expected a {sort.__name__}, got {values[name]!r}")
