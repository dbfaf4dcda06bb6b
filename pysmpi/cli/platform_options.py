"""The options in the files of machines, checked as a run checks them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pysmpi.collectives.selection import Selection
from pysmpi.errors import UsageError
from pysmpi.machine import Machine
from pysmpi.mpi.files.disks import disk_options
from pysmpi.network.choice import choose, model_named
from pysmpi.platform.config import Settings, canonical
from pysmpi.platform.loader import load
from pysmpi.platform.model import Platform
from pysmpi.time.host_speed import host_speed


def wrong_options(path: str) -> list[str]:
    """The options that a run with this machine would refuse, one line each."""
    platform = load(path)
    found: list[str] = []

    def note(test: Callable[[], object]) -> None:
        try:
            test()
        except UsageError as error:
            text = str(error)
            if not text.startswith(platform.source):
                text = f"{platform.source}: {text}"
            found.append(text)

    for model, options in [("", platform.config), *platform.models.items()]:
        if model:
            note(partial(choose, platform, {}, model))
        for name, value in options.items():
            note(partial(_read, name, value, platform))
    if not found:
        note(partial(_prepare, platform))
    return list(dict.fromkeys(found))


def _read(name: str, value: str, platform: Platform) -> None:
    """Read one option."""
    known = canonical(name, platform.source)
    if known == "network/model":
        model_named(value, platform.source)
    settings = Settings({known: value})
    Selection.from_options(settings.said)
    disk_options(settings)
    if settings.text("smpi/host-speed"):
        host_speed(settings.text("smpi/host-speed"))


def _prepare(platform: Platform) -> None:
    """Make the models of a run with all options together."""
    machine = Machine(1, platform=platform)
    machine.transport([slot.host for slot in machine.slots], machine.slots)
