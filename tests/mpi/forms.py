"""The forms of a collective call."""

from __future__ import annotations

from typing import Any

FORMS = ("blocking", "nonblocking", "persistent")


def perform(comm: Any, form: str, name: str, *arguments: Any, starts: int = 2) -> None:
    """Make a call in one of its forms; a persistent one is started so many times."""
    if form == "blocking":
        getattr(comm, name)(*arguments)
    elif form == "nonblocking":
        getattr(comm, f"I{name.lower()}")(*arguments).Wait()
    else:
        request = getattr(comm, f"{name}_init")(*arguments)
        for _ in range(starts):
            request.Start()
            request.Wait()
        request.Free()
