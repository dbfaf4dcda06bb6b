"""The arguments of `pysmpi run`: its options and the program.

Command lines of `mpiexec` work: its spellings of pysmpi's options have an effect, other known
options of launchers are ignored with a note, and `python` before the program is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import chain

from pysmpi.cli.launchers import IGNORED, LauncherOptions, finish, take
from pysmpi.errors import UsageError
from pysmpi.job.command_lines import is_python, split_program
from pysmpi.python.records import record
from pysmpi.text import closest, whole

# Options that set an environment variable: for the ranks of one program, and for all ranks.
_OWN_VARIABLE = ("-x", "-env", "--env")
_VARIABLE = (*_OWN_VARIABLE, "-genv", "--genv")
_DIRECTORY = ("-wdir", "--wdir", "-wd", "--wd", "-chdir", "--chdir", "-D")
_RANKS = ("-n", "-np", "--np")
_PER_NODE = (
    "-ppn", "--ppn", "-perhost", "--perhost", "-npernode", "--npernode", "--ntasks-per-node"
)  # fmt: skip
# Other spellings of placements: of Open MPI 1.6 and MPICH.
_PLACEMENTS = {
    "bynode": "node", "byslot": "core", "bycore": "core", "bysocket": "socket", "rr": "node",
}  # fmt: skip
# The first part of srun's `--distribution`.
_DISTRIBUTIONS = {"block": "core", "cyclic": "node"}


@record
class CommandLine:
    """A parsed command line: options of pysmpi, the program, ignored options of launchers.

    `kind` is "script", "module" (`-m`) or "command" (`-c`); `target` is None if the line names no
    program. `environment` holds variables to set, or None for variables to pass on; `own` holds
    those for the ranks of this program only. `flags` are flags of a Python interpreter before the
    program, and `directory` is the initial working directory. `groups` are the words before the
    program: each option with its values.
    """

    options: list[str]
    kind: str
    target: str | None
    arguments: list[str]
    ignored: list[str]
    environment: dict[str, str | None]
    flags: list[str] = field(default_factory=list)
    own: dict[str, str | None] = field(default_factory=dict)
    directory: str | None = None
    groups: list[list[str]] = field(default_factory=list)
    launcher: LauncherOptions = field(default_factory=LauncherOptions)

    def without_values(self, words: Sequence[str]) -> list[str]:
        """The words, and the groups from now on, without values of variables, which may be secret.

        `-x NAME` is left of them: the variable as the environment of the command has it.
        """
        begin = sum(map(len, self.groups))
        rest = words[begin:]
        self.groups = [
            ["-x", group[1].partition("=")[0]] if group[0] in _VARIABLE else group
            for group in self.groups
        ]
        return [*chain.from_iterable(self.groups), *rest]

    def without(self, words: Sequence[str], names: Sequence[str]) -> list[str]:
        """The words of a command line that begins with this one, without some of its options."""
        begin = sum(map(len, self.groups))
        kept = [group for group in self.groups if _name(group[0]) not in names]
        return [*chain.from_iterable(kept), *words[begin:]]


def _name(word: str) -> str:
    """The name of an option, of a word such as `--jobs=2` or `-j2`."""
    glued = len(word) > 2 and word[1] != "-" and word[2:].isdecimal()
    return word[:2] if glued else word.partition("=")[0]


def segments(args: Sequence[str]) -> list[list[str]]:
    """The parts of a command line with several programs, separated by `:`."""
    parts: list[list[str]] = [[]]
    for word in args:
        if word == ":":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def split(args: Sequence[str], arity: Mapping[str, int]) -> CommandLine:
    """Parse a command line; `arity` is the number of words after each option of `run`."""
    own: dict[str, str | None] = {}
    directory: list[str] = []
    groups: list[list[str]] = []
    launcher = LauncherOptions()
    line = _split(args, arity, own, directory, groups, launcher)
    finish(launcher, line.options)
    line.own, line.groups, line.launcher = own, groups, launcher
    if directory:
        line.directory = directory[-1]
    return line


def split_later(args: Sequence[str]) -> tuple[int, CommandLine]:
    """Parse the words after a `:`: another program with its own options.

    Returns its number of ranks and the line. Options of the whole job are refused.
    """
    line = split(args, dict.fromkeys(_RANKS, 1))
    count = 1
    rest = line.options
    while rest:
        name, equals, value = rest[0].partition("=")
        if name not in _RANKS:
            raise UsageError(
                f"{name}: expected -n, -x, -env, -wdir or a program after ':'; put options of "
                "the job before the first program"
            )
        word = value if equals else rest[1] if len(rest) > 1 else ""
        count = whole(word) or 0
        if not count:
            raise UsageError(f"{name}: expected at least 1 rank after ':', got {word or 'nothing'}")
        rest = rest[1 if equals else 2 :]
    if line.launcher != LauncherOptions():
        raise UsageError(f"{line.groups[-1][0]}: expected before the first ':'")
    if line.environment:
        raise UsageError(f"-genv {next(iter(line.environment))}: expected before the first ':'")
    if line.target is None:
        raise UsageError("run: expected a program after ':': a file, -m MODULE or -c CODE")
    return count, line


def _split(
    args: Sequence[str],
    arity: Mapping[str, int],
    own: dict[str, str | None],
    directory: list[str],
    groups: list[list[str]],
    launcher: LauncherOptions,
) -> CommandLine:
    options: list[str] = []
    ignored: list[str] = []
    environment: dict[str, str | None] = {}
    rest = list(args)
    while rest:
        word = rest[0]
        if word == "--":
            return _program(rest[1:], options, ignored, environment)
        if re.fullmatch(r"-c[0-9]+", word) or (
            word == "-c" and len(rest) > 2 and whole(rest[1]) is not None
        ):
            raise UsageError(
                f"{word if len(word) > 2 else ' '.join(rest[:2])}: expected Python code, got a "
                "number; -n N sets the number of ranks (-c of mpirun), and each has one core, or "
                "several with --map-by core:pe=N (-c of srun)"
            )
        if word in ("-m", "-c"):
            return _chosen(rest, options, ignored, environment)
        if not word.startswith("-") or word == "-":
            return _program(rest, options, ignored, environment)
        name, equals, _ = word.partition("=")
        bare = name.lstrip("-")
        if name in arity or word in arity:
            taken = 0
        else:
            taken = take(rest, launcher, options)
        if taken:
            pass
        elif bare in IGNORED and name not in arity:
            taken = 1 if equals else 1 + IGNORED[bare]
            ignored.append(" ".join(rest[:taken]))
        elif name in _VARIABLE:
            taken = _variable(rest, name, own if name in _OWN_VARIABLE else environment)
        elif name in _DIRECTORY:
            taken = 1 if equals else 2
            value = rest[0].partition("=")[2] if equals else rest[1] if len(rest) > 1 else ""
            if not value:
                raise UsageError(f"{name}: expected a directory after it")
            directory.append(value)
        elif name in _PER_NODE:
            taken = 1 if equals else 2
            count = rest[0].partition("=")[2] if equals else rest[1] if len(rest) > 1 else ""
            each = whole(count, 9)
            if not each:
                got = count or "nothing"
                raise UsageError(f"{name}: expected at least 1 rank a node, got {got}")
            options += ["--map-by", f"ppr:{each}:node"]
        elif bare == "pernode" and name not in arity:
            taken = 1
            options += ["--map-by", "ppr:1:node"]
        elif bare in _PLACEMENTS and name not in arity:
            taken = 1
            options += ["--map-by", _PLACEMENTS[bare]]
        elif bare == "distribution" and name not in arity:
            taken = 1 if equals else 2
            value = rest[0].partition("=")[2] if equals else rest[1] if len(rest) > 1 else ""
            found = _DISTRIBUTIONS.get(value.lower().removesuffix(":block"))
            if found is None:
                raise UsageError(
                    f"{name}: expected block or cyclic, got {value or 'nothing'}; see --map-by "
                    "and --rank-by for other placements"
                )
            options += ["--map-by", found]
        else:
            _check_name(name, arity)
            taken = 1 if equals else 1 + arity.get(word, 0)
            options += rest[:taken]
        groups.append(rest[:taken])
        del rest[:taken]
    return CommandLine(options, "script", None, [], ignored, environment)


def _check_name(name: str, arity: Mapping[str, int]) -> None:
    """Refuse a long name after one dash, which would be read as several short options."""
    if name.startswith("--") or len(name) == 2 or name in arity:
        return
    letters = [f"-{letter}" for letter in name[1:]]
    if arity.get(letters[0]) or all(letter in arity for letter in letters):
        return  # a value follows its option, as in -n4, or these are flags
    names = {known.lstrip("-"): known for known in reversed(list(arity))}
    close = closest(name.lstrip("-"), names)
    meant = f"; did you mean {names[close]}?" if close else ""
    raise UsageError(f"{name}: no such option{meant} (see pysmpi run --help)")


def _variable(rest: list[str], name: str, environment: dict[str, str | None]) -> int:
    """Read `-x NAME[=VALUE]`, `-genv NAME VALUE` or `-genv NAME=VALUE`; return the word count."""
    if len(rest) < 2:
        raise UsageError(f"{name}: expected the name of a variable after it")
    variable, equals, value = rest[1].partition("=")
    if equals:
        environment[variable] = value
        return 2
    if name == "-x":
        environment[variable] = None
        return 2
    if len(rest) < 3:
        raise UsageError(f"{name} {variable}: expected a value after it")
    environment[variable] = rest[2]
    return 3


def _chosen(
    rest: list[str], options: list[str], ignored: list[str], environment: dict[str, str | None]
) -> CommandLine:
    """A program after `-m` or `-c`; all further words are its arguments."""
    kind, what = ("module", "a module") if rest[0] == "-m" else ("command", "a program")
    if len(rest) < 2:
        raise UsageError(f"{rest[0]}: expected {what} after it")
    return CommandLine(options, kind, rest[1], rest[2:], ignored, environment)


def _program(
    rest: list[str], options: list[str], ignored: list[str], environment: dict[str, str | None]
) -> CommandLine:
    """The program and its arguments, without `python` and its flags before it."""
    if rest and is_python(rest[0]):
        kind, target, arguments, flags = split_program(rest[1:])
        if target is None:
            what = {"module": "a module", "command": "a program"}.get(kind)
            where = f"{rest[0]} {'-m' if kind == 'module' else '-c'}" if what else rest[0]
            raise UsageError(f"{where}: expected {what or 'a program'} after it")
        return CommandLine(options, kind, target, arguments, ignored, environment, flags)
    if not rest:
        return CommandLine(options, "script", None, [], ignored, environment)
    return CommandLine(options, "script", rest[0], rest[1:], ignored, environment)


def pairs(words: Sequence[str], option: str, example: str) -> dict[str, str]:
    """Read `NAME=VALUE` words; UsageError shows an example."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            raise UsageError(f"{option} {word}: expected NAME=VALUE, such as {example}")
        found[name] = value
    return found
