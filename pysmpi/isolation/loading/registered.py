"""Entries that extension modules make for each other in the dictionary of the interpreter.

pybind11 keeps the classes and the modules there that it has made, each once only. Ranks that load
copies of such modules have classes of their own. Modules that all ranks share keep what they have
found first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

from pysmpi.isolation.exchange import Exchange
from pysmpi.isolation.state import ProcessState

_KEY = "pybind11"  # is part of its keys


class Registered(ProcessState):
    """The entries of pybind11; a rank has its own from its first extension module on."""

    name = "modules and classes of pybind11"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self.dictionary = _dictionary_of_interpreter()

    def capture(self) -> dict[object, object]:
        """The entries that the interpreter has now."""
        return {key: value for key, value in self.dictionary.items() if _KEY in str(key)}

    def install(self, value: dict[object, object]) -> None:
        """Give the interpreter the entries of a rank."""
        for key in self.capture():
            del self.dictionary[key]
        self.dictionary.update(value)

    @contextmanager
    def of_rank(self) -> Iterator[None]:
        """Is in effect while an extension module of the running rank is loaded."""
        if not self.exchange.follows(self.name):
            self.common = self.shown = self.capture()
            self.exchange.follow(self)
        state = self.exchange.shown
        if state is not self.exchange.outside and self.name not in state.own:
            self.install({})
            self.record(state)
        try:
            yield
        finally:
            self.record(state)


def _dictionary_of_interpreter() -> dict[object, object]:
    api = ctypes.pythonapi
    state = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyInterpreterState_Get", api))
    dictionary = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(
        ("PyInterpreterState_GetDict", api)
    )
    result: dict[object, object] = ctypes.cast(dictionary(state()), ctypes.py_object).value
    return result
