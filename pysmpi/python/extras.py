"""The extras of pysmpi: packages that only parts of it need.

`pip install 'pysmpi[plots]'` installs those of one extra.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from pysmpi.errors import UsageError


class Extra(NamedTuple):
    """A package that pysmpi imports only for `purpose`."""

    package: str
    purpose: str


# As in `[project.optional-dependencies]` of pyproject.toml, without the extras of developers.
EXTRAS = {
    "png": Extra("cairosvg", "pictures of algorithms as PNG"),
    "plots": Extra("matplotlib", "plots of sweeps and calibrations"),
    "parquet": Extra("pyarrow", "traces and tables as Parquet"),
    "otf2": Extra("otf2", "traces as OTF2"),
    "memory": Extra("scipy", "the study of coherent caches, calibration of networks"),
    "debug": Extra("debugpy", "debuggers of editors"),
    "sweep": Extra("distributed", "sweeps and searches on several processors"),
}


def installs(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'pysmpi[{extra}]'"


def lacking(place: str, extra: str, instead: str = "") -> UsageError:
    """The error of a part of pysmpi at `place` whose package is not installed."""
    choice = f"; {instead}" if instead else ""
    return UsageError(
        f"{place}: needs the package {EXTRAS[extra].package}, which is not installed: "
        f"{installs(extra)}{choice}"
    )


def missing_requirement(error: ModuleNotFoundError) -> str:
    """The message for a package that this Python lacks; empty if the module is pysmpi's own."""
    package = (error.name or "pysmpi").partition(".")[0]
    if package == "pysmpi" or package in sys.stdlib_module_names:
        return ""
    for name, extra in EXTRAS.items():
        if extra.package == package:
            return f"needs the package {package}, which is not installed: {installs(name)}"
    return (
        f"{sys.executable} has no package {package!r}, which pysmpi needs; install pysmpi with its "
        f"requirements: {sys.executable} -m pip install ., in a clone of pysmpi"
    )
