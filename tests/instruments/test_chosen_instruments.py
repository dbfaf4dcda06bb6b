"""Options choose the instruments of a run, and the default options none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pysmpi.errors import UsageError
from pysmpi.instruments import INSTRUMENTS, TABLE, Instrument, InstrumentKind, chosen
from pysmpi.job.options import Options


def test_a_plain_run_has_none() -> None:
    assert chosen(Options()) == []


@pytest.mark.parametrize(
    "options",
    [{"trace": "t.jsonl"}, {"report": "r.json"}, {"explain": True}, {"view": "v.html"},
     {"schedule": "random"}, {"check": "all"}, {"fault": ("rank=0@1s",)},
     {"noise": "linux-tuned"}],
    ids=lambda options: next(iter(options)),
)  # fmt: skip
def test_each_option_chooses_one(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(chosen(Options(**options))) == 1
    assert any(set(options) <= set(names) for names, _ in TABLE)


def test_several_are_in_the_order_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one, two = chosen(Options(check="all")), chosen(Options(schedule="random"))
    both = chosen(Options(check="all", schedule="random"))
    assert [type(part) for part in both] == [type(part) for part in two + one]


@pytest.mark.parametrize("options", [{"check": "nonsense"}, {"schedule": "nonsense"}])
def test_wrong_values_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="nonsense"):
        chosen(Options(**options))


class Named(Instrument):
    """An instrument whose argument is a word, if it has one."""

    def __init__(self, argument: str | None) -> None:
        if argument == "":
            raise ValueError("expected a word")
        self.argument = argument


def test_instruments_of_others_are_chosen_by_their_names() -> None:
    INSTRUMENTS.add(InstrumentKind("named_by_test", "has a name", Named))
    try:
        (one,) = chosen(Options(instrument="named_by_test"))
        assert isinstance(one, Named) and one.argument is None
        made = chosen(Options(instrument=("named_by_test", "named_by_test:a:b")))
        assert [part.argument for part in made if isinstance(part, Named)] == [None, "a:b"]
        with pytest.raises(UsageError, match=r"--instrument named_by_test:: expected a word"):
            chosen(Options(instrument="named_by_test:"))
        with pytest.raises(UsageError, match="--instrument nonsense"):
            chosen(Options(instrument="nonsense"))
    finally:
        INSTRUMENTS.discard("named_by_test")


def test_without_an_instrument_of_others_the_message_says_where_they_come_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(INSTRUMENTS, "names", list)
    with pytest.raises(UsageError, match=r"no instrument is registered; .* pysmpi\.instruments"):
        chosen(Options(instrument="nonsense"))
