"""The applications that studies run as commands: the programs of apps/."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def application(name: str) -> Path:
    """The path of an application: in the installed package, or beside that of a clone."""
    installed = PACKAGE / "apps" / name
    return installed if installed.exists() else PACKAGE.parent / "apps" / name
