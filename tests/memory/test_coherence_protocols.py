"""Every table is safe in every state of small systems; a broken table is found."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysmpi.errors import UsageError
from pysmpi.memory.coherence import ProtocolError, protocol, shipped
from pysmpi.memory.coherence.protocol import EVICT, READ, WRITE
from pysmpi.memory.coherence.safety import explore

WITHOUT_CHANGE = {
    ("MESI", READ, "I", "M"): {"data": "memory", "write_back": False},
    ("MESI", WRITE, "S", "S"): {"others": {}},
    ("MESI", EVICT, "M", "I"): {"write_back": False},
    ("MESIF", READ, "I", "F"): {"others": {}},
    ("MOESI", READ, "I", "M"): {"others": {}},
    ("MOESI", EVICT, "O", "S"): {"write_back": False},
    ("MOESI", READ, "I", "O"): {"data": "memory"},
    ("GOLS", EVICT, "L", "I"): {"write_back": False},
    ("FAME-A", READ, "I", "M"): {"write_back": False},
    ("FAME-B", READ, "I", "E"): {"becomes": "E"},
    ("FAME-B-store", WRITE, "I", "M"): {"update": False},
}


def broken(name, operation, own, other, changes):
    table = protocol(name)
    key = (operation, own, other)
    rules = {**table.rules, key: replace(table.rules[key], **changes)}
    return replace(table, rules=rules)


@pytest.mark.parametrize("name", shipped())
@pytest.mark.parametrize("caches", [1, 2, 3, 4])
def test_every_table_is_safe(name, caches):
    found = explore(protocol(name), caches)
    assert found.violation is None
    assert found.states > caches


@pytest.mark.parametrize("where", WITHOUT_CHANGE, ids=lambda where: "-".join(where))
def test_a_broken_table_is_caught(where):
    found = explore(broken(*where, WITHOUT_CHANGE[where]), 3)
    assert found.violation is not None
    assert found.violation.steps


def test_a_violation_says_how_to_get_there():
    table = broken("MESI", WRITE, "S", "S", {"others": {}})
    found = explore(table, 2)
    assert str(found.violation) == (
        "an exclusive line is shared: caches 0 and 1 "
        "(after cache 0 reads, cache 1 reads, cache 0 writes: M S)"
    )


def test_a_missing_rule_is_caught():
    table = protocol("MESI")
    rules = {key: rule for key, rule in table.rules.items() if key != (READ, "I", "E")}
    found = explore(replace(table, rules=rules), 2)
    assert "expected a rule for read by a cache in I while another is in E" in str(found.violation)
    with pytest.raises(ProtocolError):
        replace(table, rules=rules).read(("E", "I"), 1)


@given(
    st.sampled_from(shipped()),
    st.integers(2, 5),
    st.lists(st.tuples(st.sampled_from([READ, WRITE, EVICT]), st.integers(0, 4)), max_size=30),
)
@settings(deadline=None)
def test_a_cache_has_what_it_just_accessed(name, caches, accesses):
    table = protocol(name)
    states = table.initial(caches)
    for operation, who in accesses:
        who %= caches
        if operation == EVICT and states[who] == table.invalid:
            continue
        states, transfer = table.access(operation, states, who)
        assert (states[who] == table.invalid) == (operation == EVICT)
        assert who not in transfer.invalidated
        if operation == READ:
            again, hit = table.read(states, who)
            assert hit.hit and again == states


def test_the_paper_s_two_protocols_differ_at_a_modified_line():
    a, b, printed = protocol("FAME-A"), protocol("FAME-B"), protocol("FAME-B-store")
    assert a.read(("I", "M"), 0)[0] == ("E", "I")
    assert b.read(("I", "M"), 0)[0] == ("S", "S")
    assert printed.read(("I", "M"), 0)[0] == ("E", "I")
    assert printed.write(("I", "M"), 0)[0] == ("S", "S")
    differ = [key for key in a.rules if a.rules[key] != b.rules[key]]
    assert differ == [(READ, "I", "M")]


def test_the_directory_of_a_xeon_phi():
    table = protocol("GOLS")
    names = []
    states = table.initial(3)
    for operation, who in [(READ, 0), (READ, 1), (WRITE, 1), (READ, 2)]:
        names.append(table.directory_state(states))
        states, _ = table.access(operation, states, who)
    names.append(table.directory_state(states))
    assert names == ["GI", "GE/GM", "GS", "GE/GM", "GOLS"]


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("name: x\n", 'expected the key "states", got none'),
        ("name: x\nstates: {M: [exclusive], S: []}\nread: []\nwrite: []\n", "one state that is [i"),
        (
            "name: x\nstates: {I: [invalid], S: []}\nread: []\nwrite: []\n",
            "expected the states strongest first, I (invalid) last",
        ),
        (
            "name: x\nstates: {S: [], I: [invalid]}\nwrite: []\n"
            "read:\n- {own: I, other: S, data: memory, becomes: Q}\n",
            'read[0].becomes: expected one of S, I, got "Q"',
        ),
        (
            "name: x\nstates: {S: [], I: [invalid]}\nwrite: []\n"
            "read:\n- {own: I, other: [S, I], data: cache, becomes: S}\n",
            "read[0]: expected another cache with the line, got one in I",
        ),
        (
            "name: x\nstates: {S: [], I: [invalid]}\nwrite: []\n"
            "read:\n- {own: I, other: any, data: memory}\n- {own: I, other: S, data: memory}\n",
            "expected one rule for read in I while another cache is in S, got a second",
        ),
    ],
)
def test_a_table_of_one_s_own_is_read_strictly(tmp_path, text, complaint):
    path = tmp_path / "table.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as raised:
        protocol(path)
    assert str(raised.value).startswith(f"{path}:")
    assert complaint in str(raised.value)


def test_an_unknown_name_is_told_what_there_is():
    with pytest.raises(UsageError, match='did you mean "MESIF"'):
        protocol("mesiff")
    assert protocol("moesi") is not None
