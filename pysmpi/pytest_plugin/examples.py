"""Hypothesis: the engine draws once, in the user's session, and all ranks get the example.

So a failing example is shrunk as usual, and no rank draws other values than its peers.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pytest

from pysmpi.pytest_plugin.outcomes import ItemOutcome

_SETTINGS = "_hypothesis_internal_use_settings"


def is_property(item: object) -> bool:
    """Whether a test has `@given`."""
    return getattr(getattr(item, "obj", None), "is_hypothesis_test", False)


class CommonData:
    """`st.data()` in ranks: the n-th draw has the same result in each."""

    def __init__(self, data: Any, drawn: list[object]) -> None:
        self._data = data
        self._drawn = drawn
        self._number = 0

    def draw(self, strategy: Any, label: Any = None) -> Any:
        """Draw a value, or get the one that another rank has drawn here."""
        if self._number == len(self._drawn):
            self._drawn.append(self._data.draw(strategy, label))
        self._number += 1
        return _own(self._drawn[self._number - 1])

    def __repr__(self) -> str:
        return repr(self._data)


class Example:
    """One example: the drawn arguments, of which each rank gets a copy."""

    def __init__(self, arguments: Mapping[str, object]) -> None:
        self._arguments = dict(arguments)
        self._drawn: dict[str, list[Any]] = {}

    def arguments(self) -> dict[str, object]:
        """The arguments for one rank."""
        return {
            name: CommonData(value, self._drawn.setdefault(name, []))
            if type(value).__name__ == "DataObject"
            else _own(value)
            for name, value in self._arguments.items()
        }


class Pause:
    """Hides from Hypothesis that it runs an example, while ranks import their test modules."""

    def __init__(self, example: Example | None) -> None:
        self._variable: Any = None
        if example is not None:
            self._variable = import_module("hypothesis.control")._current_build_context
            self._value = self._variable.value
            self._variable.value = None

    def end(self) -> None:
        """Ranks begin with the example."""
        if self._variable is not None:
            self._variable.value = self._value


def _own(value: object) -> object:
    """A copy of a value, as each process would have; the value itself if it has no copies."""
    try:
        return copy.deepcopy(value)
    except Exception:
        return value


@contextmanager
def applied(item: Any, example: Example | None) -> Iterator[None]:
    """Inside it, calling the test of a rank runs one example."""
    if example is None:
        yield
        return
    test = item.obj
    inner = test.hypothesis.inner_test
    owner = () if getattr(item, "instance", None) is None else (item.instance,)

    @functools.wraps(inner)  # pytest shows the traceback below the real function
    def run(**fixtures: object) -> object:
        return inner(*owner, **example.arguments(), **fixtures)

    item.obj = run
    try:
        yield
    finally:
        item.obj = test


def explore(
    item: Any, run: Callable[[Example], ItemOutcome]
) -> tuple[ItemOutcome | None, pytest.ExceptionInfo[BaseException] | None]:
    """Let Hypothesis draw examples, each of which `run(example)` runs in ranks.

    Returns the outcome of the last example, which is the smallest failing one if any fails, and the
    exception of Hypothesis.
    """
    test = item.obj
    fixtures = tuple(item._fixtureinfo.argnames)
    last: list[ItemOutcome] = []
    rejected = import_module("hypothesis.errors").UnsatisfiedAssumption

    owner = getattr(item, "instance", None)

    @functools.wraps(test.hypothesis.inner_test)
    def one(*instance: object, **given: object) -> None:
        arguments = {
            name: value
            for name, value in given.items()
            if name not in fixtures and (owner is None or value is not owner)
        }
        outcome = run(Example(arguments))
        error = outcome.error()
        if not isinstance(error, rejected):
            last[:] = [outcome]
        if error is not None:
            raise error

    function = getattr(test, "__func__", test)
    handle, inner = test.hypothesis, test.hypothesis.inner_test
    settings = getattr(function, _SETTINGS)
    handle.inner_test = one
    # Ranks that begin take longer than the deadline of an example; and only lines of this process
    # outside of ranks could explain a failure.
    phases = [phase for phase in settings.phases if phase.name != "explain"]
    setattr(function, _SETTINGS, type(settings)(settings, deadline=None, phases=phases))
    try:
        test(**dict.fromkeys(fixtures))
    except (Exception, pytest.skip.Exception, pytest.fail.Exception) as error:
        return (last[0] if last else None), pytest.ExceptionInfo.from_exception(error)
    finally:
        handle.inner_test = inner
        setattr(function, _SETTINGS, settings)
    return (last[0] if last else None), None


def notes(error: BaseException) -> list[str]:
    """The notes of Hypothesis on an error, such as the example."""
    result = list(getattr(error, "__notes__", ()))
    for part in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        result += notes(part)
    return result
