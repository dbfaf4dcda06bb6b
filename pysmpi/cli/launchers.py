"""Options of mpiexec, smpirun and srun that `pysmpi run` takes, each by what it means here.

Some are other spellings of options of `pysmpi run`, some arrange the output of ranks or the
programs of a job, some have no effect on simulated ranks, and some are refused with the name of
what does the same.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import field
from itertools import groupby

from pysmpi.errors import UsageError
from pysmpi.io.reading import read_text
from pysmpi.python.records import record
from pysmpi.text import real, whole

# Options that control real processes, with their number of arguments.
IGNORED = {
    # mpiexec
    "allow-run-as-root": 0, "oversubscribe": 0, "nooversubscribe": 0, "overcommit": 0,
    "use-hwthread-cpus": 0, "report-bindings": 0, "display-allocation": 0, "timestamp-output": 0,
    "print-rank-map": 0, "print-all-exitcodes": 0, "genvall": 0, "genvnone": 0, "envall": 0,
    "envnone": 0, "bind-to": 1, "bind-to-core": 0, "bind-to-none": 0, "bind-to-socket": 0,
    "membind": 1, "launcher": 1, "launcher-exec": 1, "rmk": 1, "iface": 1, "localhost": 1,
    "usize": 1, "genvlist": 1, "envlist": 1, "mca": 2, "gmca": 2, "pmixmca": 2, "prtemca": 2,
    "verbose": 0, "v": 0, "info": 0, "prefix": 1, "nolocal": 0, "report-pid": 1,
    "disable-auto-cleanup": 0, "disable-hostname-propagation": 0, "enable-recovery": 0,
    "memory-alloc-kinds": 1, "enable-x": 0, "disable-x": 0, "topolib": 1, "demux": 1,
    "gpus-per-proc": 1, "hybrid-hosts": 0, "nameserver": 1, "order-nodes": 1, "pmi-port": 0,
    "profile": 0, "skip-launch-node": 0, "stream-buffering": 1, "tune": 1, "show-progress": 0,
    "personality": 1,
    # smpirun
    "keep-temps": 0, "tmpdir": 1, "no-privatize": 0, "privatize": 0, "log": 1, "foreground": 0,
    # srun
    "cpus-per-task": 1, "cpu-bind": 1, "mem-bind": 1, "mem": 1, "mem-per-cpu": 1, "mpi": 1,
    "unbuffered": 0, "u": 0, "kill-on-bad-exit": 0, "K": 0, "exclusive": 0, "job-name": 1, "J": 1,
    "time": 1, "t": 1, "partition": 1, "p": 1, "account": 1, "A": 1, "hint": 1, "export": 1,
    "overlap": 0, "exact": 0, "threads-per-core": 1, "gres": 1, "gpus": 1, "constraint": 1,
}  # fmt: skip

# Options that are refused, with what does the same; the number of their arguments is not needed.
REFUSED = {
    "replay": "replay a trace with: pysmpi replay FILE",
    "gdb": "stop in the debugger with --pdb, or attach gdb to: python -m pysmpi run ...",
    "lldb": "stop in the debugger with --pdb, or attach lldb to: python -m pysmpi run ...",
    "vgdb": "stop in the debugger with --pdb, or start: valgrind python -m pysmpi run ...",
    "wrapper": "all ranks are in this process; start it in the wrapper: "
    "WRAPPER python -m pysmpi run ...",
    "gtool": "all ranks are in this process; start it in the tool: TOOL python -m pysmpi run ...",
    "trace-resource": "the use of links and cores is in the page of --view FILE.html",
    "trace-comment": "a recording (--trace FILE.jsonl) has the facts of the run",
    "trace-comment-file": "a recording (--trace FILE.jsonl) has the facts of the run",
    "rankfile": "the places of ranks follow from --hostfile, --map-by and --rank-by",
    "rankmap": "the places of ranks follow from --hostfile, --map-by and --rank-by",
    "rf": "the places of ranks follow from --hostfile, --map-by and --rank-by",
    "cpus-per-rank": "--map-by core:pe=N gives each rank N cores",
    "cpus-per-proc": "--map-by core:pe=N gives each rank N cores",
    "do-not-launch": "--display-map prints the places of ranks, and the run follows",
    "tv": "stop in the debugger with --pdb; see also --break",
    "cpu-set": "ranks have cores of the simulated machine; see --map-by",
    "preload-binary": "ranks read the files of this computer",
    "xml": "--report FILE.json writes the figures of the run",
    "stdin": "all ranks share the standard input",
}

_HOSTS = ("host", "hosts", "H", "w", "nodelist")
_LABELS = {
    "l": "[{rank}] ", "prepend-rank": "[{rank}] ", "label": "{rank}: ",
    "tag-output": "[1,{rank}]<{stream}>:",
}  # fmt: skip
_TAG_WORDS = frozenset(
    ("tag", "tag-detailed", "tag-fullname", "timestamp", "rank", "raw", "copy", "nocopy",
     "merge-stderr-to-stdout", "merge")
)  # fmt: skip
_RANKS = ("-n", "-np", "--np")
_TASKS = ("-n", "-np", "--np", "--ntasks")
_CONFIG_FILES = ("configfile", "app", "multi-prog")
_MARK = r"%(\d*)([a-zA-Z%])"  # compiled at its first use


@record
class LauncherOptions:
    """The requests of the options of launchers.

    `hosts` is a list of hosts; `nodes` their number, on which all ranks are to be. `label` is the
    form of the beginning of each line of output; `files` are the names of the files of ranks by
    descriptor, with `{rank}`. `seconds` is the largest wall time. `trace` are the settings of
    smpirun's options of tracing.
    """

    hosts: str | None = None
    nodes: int | None = None
    label: str | None = None
    files: dict[int, str] = field(default_factory=dict)
    show_map: bool = False
    seconds: float | None = None
    trace: dict[str, str] = field(default_factory=dict)
    version: bool = False


def take(rest: Sequence[str], found: LauncherOptions, options: list[str]) -> int:
    """Read an option of a launcher at the begin of some words; return the number of its words.

    0 if it is none. Options of `pysmpi run` that it stands for are added to `options`. Raises
    UsageError for an option that is refused, and for a wrong value.
    """
    name, equals, value = rest[0].partition("=")
    bare = name.lstrip("-")
    if bare in REFUSED:
        raise UsageError(f"{name}: not an option of pysmpi run; {REFUSED[bare]}")
    if bare in ("trace", "trace-ti", "map", "analyze", "version", "quiet", "display-map"):
        if name.startswith("--") and bare not in ("map", "display-map", "quiet"):
            return 0  # options of pysmpi
        _flag(bare, found, options)
        return 1
    if bare in _LABELS:
        found.label = _LABELS[bare]
        return 1
    known = bare in _HOSTS or bare in _VALUES or (name in ("-o", "-e", "-N") and not equals)
    if not known:
        return 0
    if not equals:
        if len(rest) < 2:
            raise UsageError(f"{name}: expected a value after it")
        value = rest[1]
    _set(name, bare, value, found, options)
    return 1 if equals else 2


_VALUES = frozenset(
    ("output-filename", "outfile-pattern", "errfile-pattern", "prepend-pattern", "output", "error",
     "timeout", "display", "trace-file", "nodes", "ntasks")
)  # fmt: skip


def _flag(bare: str, found: LauncherOptions, options: list[str]) -> None:
    if bare in ("map", "display-map"):
        found.show_map = True
    elif bare == "analyze":
        options.append("--explain")
    elif bare == "version":
        found.version = True
    elif bare == "quiet":
        options.append("--quiet")
    else:
        found.trace["format"] = "ti" if bare == "trace-ti" else found.trace.get("format", "paje")


def _set(name: str, bare: str, value: str, found: LauncherOptions, options: list[str]) -> None:
    if bare in _HOSTS:
        found.hosts = value if found.hosts is None else f"{found.hosts},{value}"
    elif bare in ("N", "nodes"):
        found.nodes = whole(value.partition("-")[0])
        if not found.nodes:
            raise UsageError(f"{name}: expected a number of nodes above 0, got {value!r}")
    elif bare == "ntasks":
        options += ["-n", value]
    elif bare == "trace-file":
        found.trace["file"] = value
    elif bare == "timeout":
        found.seconds = real(value)
        if found.seconds is None or not 0.0 < found.seconds <= 1e9:
            raise UsageError(f"{name}: expected seconds above 0, got {value!r}")
    elif bare == "display":
        for word in value.split(","):
            if word not in ("map", "map-devel", "allocation", "bind", "topo"):
                raise UsageError(f"{name}: expected map, got {word!r}")
            found.show_map = found.show_map or word.startswith("map")
    elif bare == "output-filename":
        place = value.partition(":")[0]
        found.files[1] = found.files[2] = f"{place}.%t" if "%" not in place else place
    elif bare == "prepend-pattern":
        _check_pattern(name, value)
        found.label = _label(value)
        return
    elif bare == "outfile-pattern":
        found.files[1] = value
    elif bare in ("errfile-pattern", "error", "e"):
        found.files[2] = value
    else:
        _output(name, value, found)
    for fd, pattern in found.files.items():
        found.files[fd] = pattern
        _check_pattern(name, pattern)


def _output(name: str, value: str, found: LauncherOptions) -> None:
    """`-o` and `--output` of srun, or `--output` of Open MPI 5."""
    words = value.split(",")
    for word in words:
        key, equals, rest = word.partition("=")
        if key in ("file", "filename") and equals:
            place = rest.partition(":")[0]
            found.files[1] = found.files[2] = f"{place}.%t"
        elif key in ("dir", "directory") and equals:
            place = rest.partition(":")[0]
            found.files[1], found.files[2] = f"{place}/rank.%t/stdout", f"{place}/rank.%t/stderr"
        elif word.partition(":")[0] in _TAG_WORDS:
            if word.startswith(("tag", "rank")):
                found.label = _LABELS["tag-output"]
        elif len(words) == 1:
            found.files[1] = value
            found.files.setdefault(2, value)
        else:
            raise UsageError(f"{name}: expected tag, file=NAME, dir=NAME or a file, got {word!r}")


def _label(pattern: str) -> str:
    """The form of the beginning of a line for a pattern of hydra."""
    kept = pattern.replace("{", "{{").replace("}", "}}")
    return re.sub(_MARK, lambda mark: {"r": "{rank}", "%": "%"}.get(mark[2], "0"), kept)


def _check_pattern(option: str, pattern: str) -> None:
    for match in re.finditer(_MARK, pattern):
        if match[2] not in "rtgpjJsnNhux%":
            raise UsageError(
                f"{option} {pattern}: expected %t or %r for the rank, got {match[0]!r}"
            )


def finish(found: LauncherOptions, options: list[str]) -> None:
    """Add the options of a run that several options of launchers stand for together."""
    if found.hosts is not None:
        options += ["--hostfile", f"hosts:{found.hosts}"]
    if found.trace:
        form = found.trace.get("format", "paje")
        options += ["--trace", found.trace.get("file", "smpi_simgrid.trace")]
        options += ["--trace-format", form]
    if found.nodes is not None:
        each = next((word for word in reversed(options) if word.startswith("ppr:")), None)
        given = [options[at + 1] for at, word in enumerate(options[:-1]) if word in _RANKS]
        ranks = whole(given[-1]) if given else None
        if given and not ranks:
            return  # the number of ranks is refused later
        if each is None:
            share = -(-(ranks or found.nodes) // found.nodes)
            options += ["--map-by", f"ppr:{share}:node"]
        else:
            share = whole(each.split(":")[1]) or 1
        if ranks is None:
            options += ["-n", str(share * found.nodes)]


def file_of(pattern: str, rank: int, host: str) -> str:
    """The file of a rank for a pattern of srun (%t, %N) or hydra (%r, %h)."""

    def put(match: re.Match[str]) -> str:
        mark = match[2]
        if mark == "%":
            return "%"
        if mark in "rt":
            return str(rank).zfill(int(match[1][:2] or "0"))
        return host if mark in "Nhn" else "0"

    return re.sub(_MARK, put, pattern)


def with_config_files(args: Sequence[str]) -> list[str]:
    """The words of a command line, with those of `-configfile`, `--app` or `--multi-prog`.

    The lines of such a file are the programs of a job.
    """
    for at, word in enumerate(args):
        name, equals, value = word.partition("=")
        bare = name.lstrip("-")
        if not name.startswith("-") and not equals:
            # The program of the line, or the value of an option before it.
            if at and args[at - 1].startswith("-"):
                continue
            break
        if bare not in _CONFIG_FILES or not name.startswith("-"):
            continue
        if bare == "multi-prog":
            return _multi_prog(list(args), at)
        rest = list(args[at + 1 :])
        if not equals:
            if not rest:
                raise UsageError(f"{name}: expected a file after it")
            value = rest.pop(0)
        if rest:
            raise UsageError(f"{name} {value}: expected nothing after the file, got {rest[0]!r}")
        parts = _lines(value)
        if not parts:
            raise UsageError(f"{value}: expected a program in each line, got none")
        joined: list[str] = []
        for part in parts:
            joined += [":", *part] if joined else part
        return [*args[:at], *joined]
    return list(args)


def _lines(path: str) -> list[list[str]]:
    text = read_text(path, "a text file of programs").replace("\\\n", " ")
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise UsageError(f"{path}:{number}: expected words as in a shell: {error}") from None
        if words:
            found.append(words)
    return found


def _multi_prog(args: list[str], at: int) -> list[str]:
    """The job that a file of srun describes: `RANKS PROGRAM ARG...` in each line."""
    name, equals, path = args.pop(at).partition("=")
    if not equals:
        # As the program of a job, the file may stand behind other options.
        places = [
            place
            for place in range(at, len(args))
            if not args[place].startswith("-") and (place == at or args[place - 1] not in _TASKS)
        ]
        if not places:
            raise UsageError(f"{name}: expected a file after it")
        path = args.pop(at if places[0] == at else places[-1])
    total = None
    kept: list[str] = []
    rest = iter(args)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in _TASKS:
            total = whole(value if equals else next(rest, ""), 7)
        else:
            kept.append(word)
    programs: dict[int, list[str]] = {}
    others: list[str] | None = None
    for words in _lines(path):
        if words[0] == "*":
            others = words[1:]
            continue
        numbers = _ranks(words[0], path)
        for offset, number in enumerate(numbers):
            programs[number] = [
                word.replace("%t", str(number)).replace("%o", str(offset)) for word in words[1:]
            ]
    count = total or (max(programs) + 1 if programs else 1)
    parts: list[list[str]] = []
    for rank in range(count):
        program = programs.get(rank, others)
        if not program:
            raise UsageError(f"{path}: expected a program of rank {rank}, got none")
        parts.append(program)
    joined: list[str] = []
    for program, same in groupby(parts):
        words = ["-n", str(len(list(same))), *program]
        joined += [":", *words] if joined else [*kept, *words]
    return joined


def _ranks(text: str, path: str) -> list[int]:
    found: list[int] = []
    for piece in text.split(","):
        first, dash, last = piece.partition("-")
        begin, end = whole(first, 7), whole(last if dash else first, 7)
        if begin is None or end is None or end < begin:
            raise UsageError(f"{path}: expected ranks such as 0,2-3 or *, got {text!r}")
        found += range(begin, end + 1)
    return found
