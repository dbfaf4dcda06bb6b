"""The packages of pysmpi with their own tests, and the choice of places over all of them."""

from __future__ import annotations

import random
import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.mutate.mutations import Mutation, identifiers, mutations

# The tests of a package are the folder of its name, if nothing else stands here.
TESTS = {
    "__main__": ["cli/test_cli_start.py", "cli/test_cli_run.py"],
    "_interpreted": ["project/test_interpreted.py"],
    "api": ["job", "reports", "mpi/test_runs.py"],
    "checkers": ["checkers", "bugs", "explore"],
    "cli": ["cli", "coherence/test_studies_on_command.py"],
    "cluster": ["cluster", "explore/test_cluster.py", "sweeps"],
    "coherence": ["coherence", "memory", "cli/test_cli_coherence.py"],
    "diagnostics": ["reports", "cli/test_cli_lists.py", "bugs"],
    "errors": ["reports", "platform"],
    "hints": ["hints", "apps/test_apps_annotated.py", "shadow"],
    "instruments": ["instruments", "trace", "explore"],
    "isolation": ["isolation", "ranks/test_ends_and_signals.py"],
    "job": [
        "job",
        "python/test_facts.py",
        "cli/test_cli_arguments.py",
        "cli/test_cli_run.py",
        "isolation",
    ],
    # Processes and choices are tested through what uses them.
    "kernel": [
        "kernel",
        "network",
        "explore/test_strategies.py",
        "explore/test_systematic.py",
        "mpi/test_messages.py",
        "mpi/test_completion.py",
    ],
    "machine": ["platform", "network"],
    "own_process": ["own_process", "ranks", "waiting"],
    "patching": ["patching", "isolation", "time"],
    "patches": ["patches", "isolation", "debugging", "waiting"],
    "plugins": ["project/test_plugins.py"],
    "python": [
        "python",
        "project/test_records.py",
        "project/test_extras.py",
        "reports/test_program_errors.py",
        "isolation",
    ],
    "text": [
        "text",
        "cli/test_cli_text.py",
        "cli/test_cli_numbers.py",
        "cli/test_cli_foreign_text.py",
    ],
}
NOTHING_TO_BREAK = {"version"}


@dataclass(frozen=True)
class Place:
    """A mutation of a file of a package."""

    room: str
    path: str  # from the top of the project
    mutation: Mutation

    def __str__(self) -> str:
        return f"{self.path}:{self.mutation.line}"


def rooms(root: Path) -> list[str]:
    """All packages and modules of the import contract in `pyproject.toml`."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c.get("containers") == ["pysmpi"])
    return sorted(name for layer in layers for name in re.split(r"\s*[|:]\s*", layer))


def files(root: Path, room: str) -> list[Path]:
    """The Python files of a package, or its only one."""
    module = root / "pysmpi" / f"{room}.py"
    return [module] if module.exists() else sorted((root / "pysmpi" / room).rglob("*.py"))


def choose(root: Path, seed: int, count: int, only: list[str] | None = None) -> list[Place]:
    """`count` places: one of each package, the others by the numbers of places that they have.

    The places of a package depend on its own files, the seed and their number alone.
    """
    sources: dict[str, list[tuple[str, bytes, Mutation]]] = {}
    for room in only or rooms(root):
        places = []
        for path in files(root, room):
            source = path.read_bytes()
            name = path.relative_to(root).as_posix()
            places += [(name, source, place) for place in mutations(source)]
        if places and room not in NOTHING_TO_BREAK:
            sources[room] = places
    total = sum(map(len, sources.values()))
    shares = {room: (count - len(sources)) * len(some) / total for room, some in sources.items()}
    numbers = Counter({room: 1 + max(0, int(share)) for room, share in shares.items()})
    for room in sorted(shares, key=lambda room: (int(shares[room]) - shares[room], room)):
        if numbers.total() >= count:
            break
        numbers[room] += 1
    chosen = []
    for room, places in sources.items():
        random.Random(f"{seed} {room}").shuffle(places)
        good = (
            Place(room, name, place) for name, source, place in places if place.compiles(source)
        )
        chosen += [place for _, place in zip(range(numbers[room]), good)]
    return chosen[:count]


def own_tests(root: Path, place: Place) -> list[str]:
    """The test files of the package of a place, those first that most likely fail."""
    names = TESTS.get(place.room, [place.room])
    if not any((root / "tests" / name).exists() for name in names):
        # A new package: the tests that name it, and those of the state of ranks.
        named = re.compile(rf"\bpysmpi[./]{place.room}\b")
        files_of_tests = sorted((root / "tests").rglob("test_*.py"))
        names = [
            path.relative_to(root / "tests").as_posix()
            for path in files_of_tests
            if named.search(path.read_text())
        ] or ["isolation"]
    source = (root / place.path).read_bytes()
    module = place.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    stem = module.rpartition(".")[2]
    weights = {module: 20.0, stem: 3.0}
    for position, word in enumerate(identifiers(source, place.mutation)):
        weights.setdefault(word, 6.0 if position < len(place.mutation.scope) else 1.0)
    ranking = []
    for position, name in enumerate(names):
        target = root / "tests" / name
        for path in [target] if target.is_file() else sorted(target.rglob("test_*.py")):
            words = Counter(re.findall(r"[\w.]+", path.read_text()))
            for word, number in list(words.items()):
                for part in word.split(".") if "." in word else ():
                    words[part] += number
            score = sum(
                weight * min(words[word], 5) ** 0.5 for word, weight in weights.items()
            ) + 30 * (stem.rstrip("s") in path.stem)
            ranking.append((-score / (1 + position), path.relative_to(root).as_posix()))
    return [name for _, name in sorted(ranking)]
