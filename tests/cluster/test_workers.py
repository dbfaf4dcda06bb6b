"""A scheduler is used only if it has workers, and all of them have this pysmpi."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from pysmpi.cluster import client
from pysmpi.cluster.client import _check_workers, next_of
from pysmpi.errors import UsageError
from pysmpi.version import __version__


class Client:
    """A client of Dask whose workers answer with these versions."""

    def __init__(self, *answers: object) -> None:
        self.answers = {f"tcp://w{i}:1": answer for i, answer in enumerate(answers)}

    def wait_for_workers(self, number: int, timeout: float) -> None:
        if len(self.answers) < number:
            raise TimeoutError

    def run(self, function: Callable[[], str], on_error: str) -> dict[str, object]:
        assert on_error == "return" and function() == __version__
        return self.answers


def test_equal_versions_are_accepted() -> None:
    _check_workers(Client(__version__, __version__), "tcp://s:1")


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ((), "--scheduler tcp://s:1: it has no workers"),
        ((__version__, "0.0"), rf"worker tcp://w1:1: expected pysmpi {__version__}, got 0\.0"),
        ((ModuleNotFoundError("no pysmpi"),), "worker tcp://w0:1: expected .* got no pysmpi"),
    ],
)
def test_others_are_refused(answers: tuple[object, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        _check_workers(Client(*answers), "tcp://s:1")


class Arriving:
    """Futures of which one has arrived after some questions."""

    def __init__(self, questions: int) -> None:
        self.questions = questions

    def has_ready(self) -> bool:
        self.questions -= 1
        return self.questions < 0

    def __next__(self) -> str:
        assert self.questions < 0
        return "future"


def test_a_signal_ends_the_wait_for_a_future(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    signals = [False, False, True]

    def check() -> None:
        if signals.pop(0):
            raise KeyboardInterrupt

    monkeypatch.setattr(client, "time", SimpleNamespace(sleep=waited.append))
    monkeypatch.setattr(client, "interruption", SimpleNamespace(check=check))
    assert next_of(Arriving(0)) == "future"
    assert len(signals) == 3 and not waited
    assert next_of(Arriving(2)) == "future"
    assert len(signals) == 1 and len(waited) == 2 and min(waited) > 0
    with pytest.raises(KeyboardInterrupt):
        next_of(Arriving(2))
    assert len(waited) == 2
