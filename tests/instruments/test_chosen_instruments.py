"""Options choose the instruments of a run, and the default options none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pysmpi.errors import UsageError
from pysmpi.instruments import TABLE, chosen
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
