"""Reads SimGrid's test scripts (`.tesh`): commands, and the output that each must have."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Command:
    """A command of a script, and what is expected of it."""

    script: Path
    line: int
    words: list[str]
    output: list[str] = field(default_factory=list)
    status: int = 0
    checked: bool = True  # whether the output is compared


@dataclass
class Run:
    """A call of smpirun with a program."""

    ranks: int | None = None
    platform: str = ""
    hostfile: str = ""
    program: str = ""
    arguments: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)  # KEY:VALUE
    calls: bool = False  # whether SMPI logs each call
    reason: str = ""  # why this is not a run of a program of MPI


def commands(script: Path) -> Iterator[Command]:
    """The commands of a script."""
    text = script.read_text().replace("\\\n", " ")
    status, checked = 0, True
    current: Command | None = None
    for number, line in enumerate(text.splitlines(), 1):
        mark, rest = line[:1], line[2:]
        if mark == "$":
            if current is not None:
                yield current
            rest = re.sub(r"\$\{\w+:=([^}]*)\}", r"\1", rest)
            rest = re.sub(r"\$\{?(\w+)\}?", r".", rest)
            current = Command(script, number, shlex.split(rest), [], status, checked)
            status, checked = 0, True
        elif mark == ">" and current is not None:
            current.output.append(rest)
        elif mark == "!":
            if rest.startswith("expect return"):
                status = int(rest.split()[-1])
            elif rest.startswith("output ignore"):
                checked = False
    if current is not None:
        yield current


# Options of smpirun with a value, and those without.
_VALUES = {"-np", "-platform", "-hostfile", "-wrapper", "-ext", "-trace-file", "-machinefile"}
_ALONE = {"-map", "-quiet", "-no-privatize", "-privatize"}


def run_of(words: list[str]) -> Run | None:
    """The call of smpirun that a command is; None if it is another command."""
    at = next((i for i, word in enumerate(words) if word.endswith("bin/smpirun")), None)
    if at is None:
        return None
    run = Run()
    rest = iter(words[at + 1 :])
    for word in rest:
        if word in _VALUES:
            value = next(rest)
            if word == "-np":
                run.ranks = int(value)
            elif word == "-platform":
                run.platform = value
            elif word in ("-hostfile", "-machinefile"):
                run.hostfile = value
            elif word == "-wrapper":
                run.reason = "runs SimGrid's model checker"
        elif word in ("-trace-ti", "-trace", "-trace-resource", "-replay"):
            run.reason = run.reason or "compares traces in SimGrid's formats"
        elif word.startswith("--cfg="):
            run.settings.append(word.removeprefix("--cfg="))
        elif word in _ALONE or word.startswith("--log="):
            run.calls |= word.startswith("--log=smpi_mpi.:verbose")
        else:
            run.program = word
            break
    for word in rest:
        if word.startswith("--cfg="):
            run.settings.append(word.removeprefix("--cfg="))
        elif word.startswith("--log="):
            run.calls |= word.startswith("--log=smpi_mpi.:verbose")
        else:
            run.arguments.append(word)
    if run.platform.endswith(".so"):
        run.reason = run.reason or "describes its platform in C++"
    if any(setting.startswith("tracing") for setting in run.settings):
        run.reason = run.reason or "compares traces in SimGrid's formats"
    return run
