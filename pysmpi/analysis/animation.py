"""Animations: the messages of recorded runs move over the pictures of their machines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pysmpi.analysis.graph import read
from pysmpi.analysis.page import assemble
from pysmpi.analysis.scene import Scene, scene_of
from pysmpi.errors import UsageError
from pysmpi.io.output import OutputFile
from pysmpi.platform.drawing import MOST_HOSTS
from pysmpi.reports.result import Result

HEIGHT = 520  # of the frame in a notebook until the page sets it, in pixels


@dataclass(frozen=True)
class Animation:
    """An animation of one run or of two: a notebook shows it, `save` writes it.

    `html` is a page that needs nothing else.
    """

    html: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page (.html). Raises UsageError if the file cannot be written."""
        with OutputFile("pysmpi.animate: save", os.fspath(path)) as file, file.writing():
            with open(file.path, "w", encoding="utf-8") as stream:
                stream.write(self.html)
            file.keep()

    def __repr__(self) -> str:
        return "<Animation: a notebook shows it, save('FILE.html') writes it>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html)}" title="Messages on the machine" '
            f'style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'
        )


def animate(
    *runs: Result | str | os.PathLike[str],
    call: int | None = None,
    begin: float | None = None,
    end: float | None = None,
    names: Sequence[str] = (),
) -> Animation:
    """An animation of the messages of one run, or of two side by side.

    A run is a `Result` of `pysmpi.run(..., explain=True)`, or the path of a recording (`trace=`).
    `call` shows one collective call of each run only, 1 is the first that takes time; `begin` and
    `end` are the times (simulated seconds) of another part of the runs. The reader can choose
    another call. `names` are the titles of the runs. Raises UsageError for other arguments, and for
    runs on more than 1,024 hosts.
    """
    where = "pysmpi.animate"
    if len(runs) not in (1, 2):
        raise UsageError(f"{where}: expected one run, or two to compare, got {len(runs)}")
    if names and len(names) != len(runs):
        raise UsageError(f"{where}: names: expected {len(runs)} of them, got {len(names)}")
    scenes = [_scene(run) for run in runs]
    if not names:
        names = _names(runs, scenes)
    for one in scenes:
        if not one.picture:
            raise UsageError(
                f"{where}: {one.name}: expected a run on at most {MOST_HOSTS:,} hosts, got "
                f"{one.hosts:,}"
            )
    options: dict[str, object] = {}
    if call is not None:
        if begin is not None or end is not None:
            raise UsageError(f"{where}: expected call, or begin and end, got both")
        calls = min(one.calls for one in scenes)
        if not 1 <= call <= calls:
            raise UsageError(
                f"{where}: call: expected the number of a collective call from 1 to {calls}, got "
                f"{call}"
                if calls
                else f"{where}: call: the run has no collective call that takes time"
            )
        options["call"] = call
    elif begin is not None or end is not None:
        last = max(one.seconds for one in scenes)
        first, until = begin or 0.0, last if end is None else end
        if not 0.0 <= first < min(until, last):
            raise UsageError(
                f"{where}: expected times with 0 <= begin < end, and begin before the end of the "
                f"run ({last:.9g} s), got {first:.9g} and {until:.9g}"
            )
        options["window"] = [first, until]
    return Animation(
        assemble([{**one.data, "name": name} for one, name in zip(scenes, names)], options)
    )


def _scene(run: object) -> Scene:
    if isinstance(run, Result):
        if not isinstance(run.scene, Scene):
            raise UsageError(
                "pysmpi.animate: expected a run with explain=True, or a recording, got a run "
                "without"
            )
        return run.scene
    if isinstance(run, (str, os.PathLike)):
        return scene_of(os.path.basename(run), read(os.fspath(run)))
    raise UsageError(
        f"pysmpi.animate: expected a Result or the path of a recording, got {type(run).__name__}"
    )


def _names(runs: Sequence[object], scenes: Sequence[Scene]) -> list[str]:
    """The names of the runs, with the options in which two runs of a program differ."""
    names = [one.name for one in scenes]
    if len(names) < 2 or names[0] != names[1]:
        return names
    options = [run.options if isinstance(run, Result) else {} for run in runs]
    differ = sorted(
        name for name in {*options[0], *options[1]} if options[0].get(name) != options[1].get(name)
    )
    found = []
    for name, one in zip(names, options):
        parts = []
        for option in differ:
            value = one.get(option)
            if isinstance(value, dict):
                value = ", ".join(f"{key}={text}" for key, text in value.items())
            if value:
                parts.append(f"{option} {value}")
        found.append(f"{name} ({'; '.join(parts)})" if parts else name)
    return found
