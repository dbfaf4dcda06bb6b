"""Diagnostics of other distributions: each has a code of its own."""

from __future__ import annotations

import pytest

from pysmpi.diagnostics import DIAGNOSTICS, Diagnostic, register


def test_a_code_is_registered_once() -> None:
    before = dict(DIAGNOSTICS)
    taken = next(iter(before))
    again = type("Again", (Diagnostic,), {"code": taken})
    with pytest.raises(ValueError, match=f"{taken} is registered twice"):
        register(again)
    assert before == DIAGNOSTICS
    assert register(before[taken]) is before[taken]


def test_codes_are_in_order() -> None:
    first = type("First", (Diagnostic,), {"code": "PSM000"})
    try:
        register(first)
        assert next(iter(DIAGNOSTICS)) == "PSM000"
        assert [*DIAGNOSTICS] == sorted(DIAGNOSTICS)
    finally:
        DIAGNOSTICS.pop("PSM000", None)
