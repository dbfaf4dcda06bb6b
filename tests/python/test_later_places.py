"""Places of code that are looked up when they are shown."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from types import FunctionType

import pytest

from pysmpi.python import frames
from pysmpi.python.frames import CallSite, current_site

FOUND = CallSite("/work/ring.c", 12, "exchange")


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The look-ups so far of the place of `file`; this registers it."""
    made: list[str] = []

    def look() -> CallSite:
        made.append("look")
        return FOUND

    monkeypatch.setattr(frames, "_later", {})
    first = frames.place_later("<ring+0x10>", look)
    assert tuple(first) == ("<ring+0x10>", 1, "?")
    yield made
    frames.forget_sites()


def late() -> CallSite | None:
    """The place of code of the file."""
    inner = eval("lambda function: lambda: function()", {"__name__": "__main__"})(current_site)
    code = inner.__code__.replace(co_filename="<ring+0x10>", co_name="?", co_qualname="?")
    site: CallSite | None = FunctionType(code, {}, "?", None, inner.__closure__)()
    return site


def test_it_is_looked_up_once_and_only_if_something_reads_it(looks: list[str]) -> None:
    site = late()
    assert site is not None and site and isinstance(site, CallSite) and looks == []
    assert str(site) == str(FOUND)
    assert (site.file, site.line, site.function) == tuple(FOUND)
    assert looks == ["look"]


def test_it_is_as_any_other_place(looks: list[str]) -> None:
    site = late()
    assert site is not None
    file, line, function = site
    assert [file, line, function] == list(FOUND) == [*site] and site[:2] == FOUND[:2]
    assert site == FOUND and FOUND == site and not site != FOUND and not FOUND != site
    assert hash(site) == hash(FOUND) and {FOUND: 1}[site] == 1 and {site: 1}[FOUND] == 1
    assert repr(site) == repr(FOUND) and f"{site}" == f"{FOUND}"
    before, after = FOUND._replace(line=9), FOUND._replace(line=120)
    assert sorted([after, site, before]) == [before, FOUND, after] == sorted([site, before, after])
    assert max(before, site) == FOUND == min(after, site)
    for same in (pickle.loads(pickle.dumps(site)), copy.copy(site), copy.deepcopy(site)):
        assert type(same) is CallSite and same == FOUND
    assert site._replace(line=3) == FOUND._replace(line=3) and site._asdict() == FOUND._asdict()
    assert looks == ["look"]


def test_a_debugger_gets_the_file_at_once(
    looks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "_debugged", False)
    frames.debug()
    assert frames.place_later("<ring+0x20>", lambda: FOUND) is FOUND
    assert frames.place_in("<ring+0x20>") is None
