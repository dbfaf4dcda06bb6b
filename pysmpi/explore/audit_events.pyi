"""An audit hook for a few events; `audit_events.c` says why it is in C."""

from collections.abc import Callable

def watch(function: Callable[[str, tuple[object, ...]], object], names: tuple[str, ...]) -> None:
    """Call a function at each event with one of these names: once in a process, without an end."""
