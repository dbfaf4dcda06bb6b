"""Completions for the shell: names that pysmpi knows, and files of a kind.

Only a shell that completes a command line loads this module. It gives the arguments and options of
a command their completions, by name; options with a list of choices have theirs from click.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

# Completes a word; the first argument is the context of the command, with the words before.
Completion = Callable[[click.Context, str], list[CompletionItem]]

RECORDINGS = (".jsonl", ".jsonl.gz", ".ti", ".ti.gz")
PATHS = "FILE|DIR|OUT|RECORDING"  # parts of the names of values that are files
MACHINES = (".yaml", ".yml", ".xml", ".graphml", ".gexf", ".json")


def any_file(incomplete: str) -> list[CompletionItem]:
    """Leave a word to the shell, which knows files."""
    return [CompletionItem(incomplete, type="file")]


def files(*suffixes: str) -> Completion:
    """Complete files that end in one of the suffixes; all files if a directory may be meant."""

    def complete(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        folder, begun = os.path.split(incomplete)
        found = []
        try:
            with os.scandir(os.path.expanduser(folder) or ".") as entries:
                for entry in entries:
                    hidden = entry.name.startswith(".") and not begun
                    if hidden or not entry.name.startswith(begun):
                        continue
                    if entry.is_dir():
                        return any_file(incomplete)
                    if entry.name.endswith(suffixes):
                        found.append(os.path.join(folder, entry.name))
        except OSError:
            pass
        return [CompletionItem(name) for name in sorted(found)] or any_file(incomplete)

    return complete


def words(known: Callable[[], Iterable[str]], *suffixes: str) -> Completion:
    """Complete names, or files with one of the suffixes where no name fits."""

    def complete(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = [CompletionItem(name) for name in known() if name.startswith(incomplete)]
        return found if found or not suffixes else files(*suffixes)(ctx, incomplete)

    return complete


def _platforms() -> list[str]:
    from pysmpi.platform.loader import shipped

    return shipped()


def _noises() -> list[str]:
    from pysmpi.faults.noise_files import PRESETS

    return list(PRESETS)


def _paper_studies() -> list[str]:
    from pysmpi.studies.framework import registry

    return list(registry())


def _selectors() -> list[str]:
    from pysmpi.collectives.registry import SELECTORS

    return SELECTORS.names()


def _operations() -> list[str]:
    from pysmpi.collectives.registry import COLLECTIVES

    return COLLECTIVES.names()


def _algorithms(operation: str) -> list[str]:
    from pysmpi.collectives.registry import COLLECTIVES, algorithms_of

    return [*algorithms_of(operation)] if operation in COLLECTIVES.names() else []


def _models() -> list[str]:
    from pysmpi.network.models import MODELS

    return MODELS.names()


def _all_models() -> list[str]:
    from pysmpi.memory.transfer.models import MEMORY_MODELS

    return [*_models(), *MEMORY_MODELS.names()]


def _codes() -> list[str]:
    from pysmpi.checkers import CHECKERS
    from pysmpi.diagnostics import DIAGNOSTICS

    CHECKERS.names()  # loads the checkers, which register their diagnostics
    return [*DIAGNOSTICS]


def _checkers() -> list[str]:
    from pysmpi.checkers import CHECKERS

    return [*CHECKERS.names(), "all", "none"]


def _instruments() -> list[str]:
    from pysmpi.instruments import INSTRUMENTS

    return INSTRUMENTS.names()


def _demos() -> Iterable[str]:
    from pysmpi.cli.demo import DEMOS

    return DEMOS


def _formats() -> list[str]:
    from pysmpi.trace.formats import FORMATS

    return FORMATS.names()


def _protocols() -> list[str]:
    from pysmpi.memory.coherence import names

    return names()


def _primitives() -> list[str]:
    from pysmpi.memory.primitives.library import shipped

    return shipped()


def _latencies() -> list[str]:
    from pysmpi.memory.primitives.placement import shipped

    return shipped()


def _keys() -> list[str]:
    from pysmpi.platform.config import OPTIONS

    return [f"{name}:" for name in OPTIONS]


def _algorithm(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    known = [*_algorithms(ctx.params.get("operation") or ""), *_selectors()]
    return [CompletionItem(name) for name in known if name.startswith(incomplete)]


def _pair(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """OP=ALGORITHM: first the operation, then its algorithms."""
    fitting = [name for name in _operations() if f"{name}=".startswith(incomplete)]
    chosen = incomplete.partition("=")[0] if "=" in incomplete else "".join(fitting[:1])
    if "=" in incomplete or len(fitting) == 1:
        pairs = [f"{chosen}={name}" for name in _algorithms(chosen)]
        return [CompletionItem(pair) for pair in pairs if pair.startswith(incomplete)]
    return [CompletionItem(f"{name}=") for name in fitting]


recordings = files(*RECORDINGS)
programs = files(".py")
platforms = words(_platforms, *MACHINES)

# By the name of a parameter, or by that of its command and itself.
COMPLETIONS: dict[str, Completion] = {
    "algorithm": _algorithm,
    "cc words": files(".c", ".o"),
    "cxx words": files(".cpp", ".cc", ".cxx", ".o"),
    "fc words": files(".f", ".F", ".f90", ".F90", ".o"),
    "breaks": words(lambda: ("rank=", "call=", "count=")),
    "cfg": words(_keys),
    "check": words(_checkers),
    "code": words(_codes),
    "coll": _pair,
    "coherence check names": words(_protocols, ".yaml"),
    "coherence latencies name": words(_latencies, ".yaml"),
    "coherence protocols name": words(_protocols, ".yaml"),
    "coherence study machine": words(_latencies, ".yaml"),
    "coherence study program": words(_primitives, ".py"),
    "coherence study protocols": words(_protocols, ".yaml"),
    "demo name": words(_demos),
    "fault": words(lambda: ("rank=", "host=", "link=", "random:rate=")),
    "file": platforms,
    "fold": words(lambda: ("none",)),
    "instrument": words(_instruments),
    "machine": platforms,
    "model": words(_models),
    "models explain": words(_all_models),
    "noise": words(_noises, ".yaml"),
    "once": words(lambda: ("files",)),
    "operation": words(_operations),
    "ops": words(_operations),
    "platform": platforms,
    "sample": words(lambda: ("auto", "none")),
    "selector": words(_selectors, ".yaml"),
    "source": recordings,
    "study": files(".yaml", ".yml"),
    "study names": words(_paper_studies),
    "trace_format": words(_formats),
    "traces": recordings,
    "analyse trace": recordings,
    "map trace": recordings,
}


def equip(command: click.Command, path: str) -> None:
    """Give the parameters of a command, or of the commands of a group, their completions."""
    if isinstance(command, click.Group):
        ctx = click.Context(command, info_name=path)
        for name in command.list_commands(ctx):
            inner = command.get_command(ctx, name)
            if inner is not None:
                equip(inner, f"{path} {name}")
    for param in command.params:
        own = COMPLETIONS.get(f"{path} {param.name}", COMPLETIONS.get(param.name or ""))
        if own is not None:
            vars(param)["shell_complete"] = own
        elif param.type is click.STRING and re.search(PATHS, param.metavar or ""):
            vars(param)["shell_complete"] = _left


def _left(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    return any_file(incomplete)


def word_of_run(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Complete a word of `pysmpi run` that is no option: the program, or its arguments."""
    line = ctx.meta.get("line")
    if line is None:
        return []
    last = line.groups[-1] if line.groups else []
    if line.target == "=" and not line.arguments and last[:1] in (["--coll"], ["-coll"]):
        # Bash takes the parts of OP=ALGORITHM for words.
        found = _pair(ctx, f"{last[-1]}={incomplete}")
        return [CompletionItem(item.value.partition("=")[2]) for item in found]
    later = ctx.meta.get("later")
    unfinished = later is None or (later[-1][1] if later else line).target is None
    return programs(ctx, incomplete) if unfinished else any_file(incomplete)
