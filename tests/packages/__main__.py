"""`python -m tests.packages`: published packages under MPICH and under pysmpi, compared."""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from . import table
from .entries import Entry, ListError, entries
from .environments import CHECKOUT, Environments, InstallError, cache_folder
from .running import Result, findings, run_entry

PAGE = CHECKOUT / "docs" / "reference" / "packages.md"
RESULTS = PAGE.with_name("packages-results.md")


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen entries; the exit status is 1 if a result is unequal without a reason."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.packages",
        description="Run published packages under MPICH and under pysmpi, and compare.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="packages (default: all)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N",
                        help="entries at once; measure times with 1 (the default)")  # fmt: skip
    parser.add_argument("--only", action="append", default=[], metavar="GROUP",
                        help="entries of a file of the list, a field or an environment; "
                        "`quick`, `unequal`, `failed`, `unmeasured` (no wall time in "
                        "docs/reference/packages.md); repeatable")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list the entries, run nothing")
    parser.add_argument("--install", action="store_true", help="only install what is needed")
    parser.add_argument("--checked", action="store_true",
                        help="only under pysmpi, and print what all checkers find")  # fmt: skip
    parser.add_argument("--mpich", action="store_true",
                        help="only under MPICH, to see that an entry is right")  # fmt: skip
    parser.add_argument("--reuse", action="store_true",
                        help="take what MPICH gave for the same program before; times then "
                        "are not comparable")  # fmt: skip
    parser.add_argument("--resume", action="store_true",
                        help="leave out entries that have a result of their version with times "
                        "that can be compared; the quickest of the others come first")  # fmt: skip
    parser.add_argument("--freeze", action="append", default=[], metavar="ENVIRONMENT",
                        help="write the versions an environment has to versions/")  # fmt: skip
    parser.add_argument("--cache", type=Path, default=cache_folder(), metavar="DIR",
                        help="environments, sources and results (default: %(default)s, or "
                        "$PYSMPI_PACKAGES_CACHE)")  # fmt: skip
    parser.add_argument("--docs", action="store_true",
                        help="write docs/reference/packages.md; rows of packages without a newer "
                        "result stay; a run of all entries writes it too. With NAME or --only, run "
                        "these first")  # fmt: skip
    given = parser.parse_args(arguments)
    try:
        everything = entries()
        chosen = choose(everything, given.names, given.only, given.cache)
    except ListError as error:
        print(error, file=sys.stderr)
        return 2
    everyone = len(chosen) == len(everything)
    if given.resume:
        chosen = remaining(chosen, results(given.cache))
    if given.list:
        for entry in chosen:
            print(f"{entry.package:24} {entry.version:12} {entry.field:16} {entry.environment:12} "
                  f"{len(entry.runs)} runs")  # fmt: skip
        return 0
    environments = Environments(given.cache.resolve())
    failures = (
        []
        if given.docs and not given.names and not given.only
        else run(chosen, environments, given)
    )
    for name in given.freeze:
        environments.freeze(name)
    if (given.docs or everyone) and not (given.install or given.mpich or given.checked):
        known = table.merged(everything, documented(), results(environments.folder))
        PAGE.write_text(table.page(everything, known), encoding="utf-8")
        RESULTS.write_text(table.results_page(everything, known), encoding="utf-8")
    for text in failures:
        print(text, file=sys.stderr)
    return 1 if failures else 0


def choose(
    everything: list[Entry], names: list[str], groups: list[str], cache: Path
) -> list[Entry]:
    """The entries that are named or are in one of the groups."""
    known = {entry.package for entry in everything}
    for name in names:
        if name not in known:
            raise ListError(f"no package {name!r} in the list")
    if not names and not groups:
        return everything
    past = results(cache)
    measured = table.merged(everything, documented(), past)

    def member(entry: Entry, group: str) -> bool:
        if group == "quick":
            return entry.quick
        if group == "unequal":
            return entry.unequal is not None
        if group == "failed":
            return entry.package not in past or not past[entry.package].equal
        if group == "unmeasured":
            return entry.package not in measured or not measured[entry.package].comparable
        return group in (entry.list, entry.field, entry.environment)

    for group in groups:
        if group not in ("failed", "unequal", "quick", "unmeasured") and not any(
            member(entry, group) for entry in everything
        ):
            raise ListError(f"no group {group!r} in the list")
    return [entry for entry in everything
            if (not names or entry.package in names)
            and all(member(entry, group) for group in groups)]  # fmt: skip


def remaining(chosen: list[Entry], past: dict[str, Result]) -> list[Entry]:
    """The entries without a result whose times can be compared, the quickest first.

    Those that were never run come last, in the order of their time limits.
    """

    def done(entry: Entry) -> bool:
        result = past.get(entry.package)
        return (
            result is not None
            and result.version == entry.version
            and result.comparable
            and table.failure(entry, result) is None
        )

    def cost(entry: Entry) -> tuple[bool, float]:
        if entry.package in past:
            return False, sum(past[entry.package].seconds)
        return True, sum(run.timeout for run in entry.runs)

    return sorted((entry for entry in chosen if not done(entry)), key=cost)


def run(chosen: list[Entry], environments: Environments, given: argparse.Namespace) -> list[str]:
    """Install, run and print each entry; return texts about the failures."""
    failures: list[str] = []
    by_environment: dict[str, list[Entry]] = defaultdict(list)
    for entry in chosen:
        by_environment[entry.environment].append(entry)
    ready: list[tuple[Entry, Path]] = []
    for name, members in by_environment.items():
        try:
            path = environments.prepare(name, members, pysmpi=not given.mpich)
        except InstallError as error:
            failures.append(f"environment {name}: {error}")
            continue
        ready += [(entry, path) for entry in members]
    if given.install:
        return failures
    ready.sort(key=lambda one: chosen.index(one[0]))
    if given.checked:
        for entry, path in ready:
            try:
                print(
                    f"{entry.package}:", *findings(entry, environments, path), sep="\n", flush=True
                )
            except InstallError as error:
                failures.append(f"{entry.package}: {error}")
        return failures
    print(f"{'package':24} {'version':12} {'':8} {'MPICH':>6} {'pysmpi':>6} ratio processor",
          flush=True)  # fmt: skip
    pairs: list[tuple[Entry, Result]] = []
    with ThreadPoolExecutor(max(1, given.jobs)) as pool:
        started = {
            pool.submit(run_entry, entry, environments, path, given.reuse, given.mpich): entry
            for entry, path in ready
        }
        for future in as_completed(started):
            entry = started[future]
            try:
                result = future.result()
            except InstallError as error:
                failures.append(f"{entry.package}: {error}")
                continue
            except Exception:
                failures.append(f"{entry.package}: {traceback.format_exc()}")
                continue
            pairs.append((entry, result))
            print(table.line(entry, result), flush=True)
            failed = table.failure(entry, result)
            if failed:
                print(f"    {failed}", flush=True)
                failures.append(failed)
            if not given.mpich:
                save(environments.folder, result)
    if not given.mpich:
        print(table.summary(pairs), flush=True)
    return failures


def documented() -> dict[str, Result]:
    """The results that the pages hold."""
    pages = [path.read_text(encoding="utf-8") for path in (PAGE, RESULTS) if path.exists()]
    return table.rows("\n".join(pages))


def results(cache: Path) -> dict[str, Result]:
    """The last result of each package."""
    found = {}
    for path in sorted((cache / "results").glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        data["seconds"] = tuple(data["seconds"])
        data["processor"] = tuple(data.get("processor", (0.0, 0.0)))
        data["ratios"] = tuple(data.get("ratios", (0.0, 0.0)))
        found[path.stem] = Result(**data)
    return found


def save(cache: Path, result: Result) -> None:
    """Keep a result for the table."""
    folder = cache / "results"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.package}.json"
    path.write_text(json.dumps(result.data(), indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
