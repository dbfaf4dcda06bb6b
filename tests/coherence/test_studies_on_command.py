"""`pysmpi coherence` on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "memory" / "flag_primitive.py"

UNSAFE = """
name: careless
states: {M: [exclusive, dirty], S: [], I: [invalid]}
read:
- {own: [M, S], other: any, data: own}
- {own: I, other: [S, I], becomes: S, data: memory}
- {own: I, other: M, becomes: S, others: S, data: cache, write_back: true}
write:
- {own: [M, S], other: any, becomes: M, data: own}
- {own: I, other: [S, I], becomes: M, others: I, data: memory}
- {own: I, other: M, becomes: M, others: I, data: cache}
"""


def test_list_and_show(status):
    code, out, _ = status("coherence", "protocols")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [
        "FAME-A", "FAME-B", "FAME-B-store", "GOLS", "MESI", "MESIF", "MOESI",
    ]  # fmt: skip
    code, out, _ = status("coherence", "protocols", "moesi")
    assert code == 0
    assert "read       I    M            S            M to O         cache" in out
    code, out, _ = status("coherence", "protocols", "FAME-A", "--json")
    table = json.loads(out)
    assert {"operation": "read", "own": "I", "other": "M", "becomes": "E"}.items() <= next(
        rule for rule in table["rules"] if rule["own"] == "I" and rule["other"] == "M"
    ).items()


def test_check_says_how_a_table_fails(status, tmp_path):
    code, out, _ = status("coherence", "check", "--caches", "4")
    assert code == 0 and out.count(" safe ") == 7
    (tmp_path / "careless.yaml").write_text(UNSAFE)
    code, out, _ = status("coherence", "check", "careless.yaml", "MESI")
    assert code == 1
    assert "careless  NOT SAFE  an exclusive line is shared: caches 0 and 1 (after" in out
    assert "MESI      safe" in out
    code, out, _ = status("coherence", "check", "careless.yaml", "--json")
    assert code == 1 and json.loads(out)["careless"]["safe"] is False


def test_study_of_a_shipped_primitive(status):
    code, out, _ = status("coherence", "study", "sr2", "--simulate", "40")
    assert code == 0
    assert "sr2 on FAME-A, latencies fame, atomic transfers, processes at 0.0.0,0.0.1" in out
    assert "Markov chain" in out and "equivalence with the specification  holds" in out
    assert "12.00 misses" in out and "all of kind index     8.00    67 %" in out
    assert "simulation: " in out


def test_study_compares(status):
    code, out, _ = status(
        "coherence", "study", "sr1", "--protocol", "FAME-A", "--protocol", "mesi",
        "--distance", "0", "--distance", "2",
    )  # fmt: skip
    assert code == 0
    head, *rows = [re.split(r"  +", line.strip()) for line in out.splitlines()[1:]]
    assert [row[0] for row in rows] == ["FAME-A"] * 2 + ["MESI"] * 2
    for row in rows:  # each has its figures
        cells = dict(zip(head, row, strict=True))
        assert cells["properties"] == "hold"
        assert float(cells["misses"]) > 0.0 and cells["latency"].endswith("s")


def test_a_comparison_has_no_figures_of_a_program_that_fails(status, tmp_path):
    (tmp_path / "mine.py").write_text(PROGRAM.read_text())
    words = ["coherence", "study", "mine.py", "--protocol", "FAME-A", "--protocol", "mesi"]
    code, out, _ = status(*words, "--set", "first=0")
    assert code == 1
    head, *rows = [re.split(r"  +", line.strip()) for line in out.splitlines()[1:]]
    assert [(row[0], row[-1]) for row in rows] == [("FAME-A", "FAIL"), ("MESI", "FAIL")]
    assert head[len(rows[0])] == "latency"


def test_study_of_a_program_of_one_s_own(status, tmp_path):
    (tmp_path / "mine.py").write_text(PROGRAM.read_text())
    words = ("coherence", "study", "mine.py", "--mapping", "0.0.0,1.0.0", "--json")
    code, out, _ = status(*words)
    assert code == 0
    (found,) = json.loads(out)
    assert found["ok"] and found["program"] == "mine"
    assert found["solved"]["by_kind"].keys() == {"flag"}
    assert found["sizes"]["chain_states"] >= found["sizes"]["lumped_states"]
    # A sender that waits for a flag which it never set goes on at once: one message too many.
    code, out, _ = status("coherence", "study", "mine.py", "--set", "first=0")
    assert code == 1
    assert "no deadlock or livelock             FAILS" in out
    assert "it does not allow: sends, sends" in out


@pytest.mark.parametrize("latencies", ["novascale", "xeon-phi", "opteron-6272"])
def test_latencies_of_platforms(status, latencies):
    code, out, _ = status("coherence", "latencies", latencies)
    assert code == 0 and "a hit takes" in out
    code, out, _ = status("coherence", "study", "barrier-central", "--latencies", latencies)
    assert code == 0 and "a barrier" in out


@pytest.mark.parametrize(
    "words, complaint",
    [
        (["study", "sr3"], "expected a file PROGRAM.py or one of sr1, sr2, barrier-central, barr"),
        (["study", "no.py"], "no.py: cannot be read: No such file or directory"),
        (["study", "sr1", "--distance", "3"], "--distance: expected below 3 for fame, got 3"),
        (["study", "sr1", "--mapping", "0.0.0"], "mapping: expected 2 positions for program sr1"),
        (["study", "sr1", "--mapping", "0.0.0,0.0.0"], "expected a processor for each process"),
        (["study", "sr1", "--mapping", "a,b"], "expected module.node.processor for each process"),
        (["study", "sr1", "--protocol", "MESO"], 'did you mean "ME'),
        (["study", "sr1", "--set", "packet=2"], 'look, streaming, lines, got "packet'),
        (["study", "sr1", "--set", "packets=x"], 'packets: expected a whole number, got "x"'),
        (["study", "sr1", "--set", "packets=0"], "packets: expected at least 1, got 0"),
        (["study", "sr1", "--latencies", "cluster"], "expected a platform that describes its nod"),
        (["study", "sr1", "--home", "lock"], '--home: expected VARIABLE=PROCESS, got "lock"'),
        (["study", "sr1", "--home", "lock=0"], "expected a variable among available[0].lock, "),
        (["study", "sr1", "--home", "*=2"], "expected a process among 0 to 1, got 2"),
        (["study", "sr1", "--no-chain"], "--no-chain: expected --simulate TURNS with it"),
        (["study", "sr1", "--limit", "50"], "expected at most 50 states, got more"),
        (["study", "barrier-central", "--set", "processes=1"], "at least 2 processes, got 1"),
        (["check", "nothing.yaml"], "nothing.yaml: cannot be read"),
    ],
)
def test_bad_input_is_one_line(status, words, complaint):
    code, out, err = status("coherence", *words)
    assert code == 2 and out == ""
    assert err.startswith("pysmpi: error: ") and err.count("\n") == 1
    assert complaint in err


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("def program(:", "mine.py:1: expected a Python program"),
        ("x = 1", "mine.py: expected a function program() that returns a Program"),
        ("\nimport nothing_such", "mine.py:2: ModuleNotFoundError: No module named"),
        ("def program():\n    return 3", "expected program() to return a Program, got a int"),
        ("def program():\n    return 1 / 0", "mine.py:2: ZeroDivisionError: division by zero"),
    ],
)
def test_a_wrong_program_is_one_line(status, tmp_path, text, complaint):
    (tmp_path / "mine.py").write_text(text)
    code, _, err = status("coherence", "study", "mine.py")
    assert code == 2
    assert complaint in err and err.count("\n") == 1


SENDS = "0: mark 0 sends *"
RECEIVES = "1: mark 1 receives *"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (f"{SENDS} precedes {RECEIVES}", "holds"),
        (f"{RECEIVES} precedes {SENDS}", "FAILS  after 0: start, "),
        (f"{SENDS} alternates with {RECEIVES}", "holds"),
        ("0: start alternates with 1: start", "FAILS  after 1: start"),
        ("0: mark 0 sends 1 leads to 1: mark 1 receives 1", "holds"),
        ("0: mark 0 sends 1 leads to 1: mark 1 receives 0", "holds"),
        ("always possible 0: load available[0].index", "holds"),
        ("never 1: store payload[0.0]", "expected an action of the program"),
        ("never 0: store payload*", "FAILS  after "),
        ("0: start before 1: start", 'expected "never A", "A precedes B"'),
    ],
)
def test_properties_of_one_s_own(status, text, verdict):
    code, out, error = status("coherence", "study", "sr2", "--property", text)
    if "expected" in verdict:
        assert code == 2 and verdict in error and error.count("\n") == 1
        return
    line = next(line for line in out.splitlines() if line.startswith(text))
    assert line.removeprefix(text).strip().startswith(verdict)
    assert code == (0 if verdict == "holds" else 1)


ONCE = """
from pysmpi.memory.primitives import Program, Variable
from pysmpi.memory.primitives.operations import load, mark, start, store


def program():
    flag = Variable("flag", 0)

    def first():
        yield mark("begin")
        while True:
            yield start()
            yield store(flag, 1)

    def second():
        while True:
            yield start()
            while not (yield load(flag)):
                pass

    return Program("once", [flag], [first, second])
"""


def test_what_happens_once_is_not_always_possible(status, tmp_path):
    (tmp_path / "once.py").write_text(ONCE)
    words = ("coherence", "study", "once.py", "--protocol", "MESI")
    code, out, _ = status(*words, "--property", "always possible 0: mark begin")
    assert code == 1 and "FAILS  in some state it can never happen again" in out
    code, out, _ = status(*words, "--property", "0: start leads to 0: mark begin")
    assert code == 1 and "FAILS  after 0: start it may never come" in out
    assert status(*words, "--property", "0: mark begin leads to 1: load flag")[0] == 0


def test_a_transition_system_is_exported(status, tmp_path):
    """Each transition of the functional model, in Aldebaran's format."""
    path = tmp_path / "sr2.aut"
    code, out, _ = status("coherence", "study", "sr2", "--export", str(path), "--json")
    assert code == 0
    sizes = json.loads(out)[0]["sizes"]
    head, *lines = path.read_text().splitlines()
    states, transitions = sizes["functional_states"], sizes["functional_transitions"]
    assert head == f"des (0, {transitions}, {states})" and len(lines) == transitions
    found = [re.fullmatch(r'\((\d+), "([01]: .+)", (\d+)\)', line).groups() for line in lines]
    assert {int(target) for _, _, target in found} | {0} == set(range(states))
    assert lines[0] == '(0, "0: start", 1)'
    code, _, error = status("coherence", "study", "sr2", "--export", str(tmp_path / "sr2.txt"))
    assert code == 2 and "expected a file called .aut" in error
    wrong = tmp_path / "wrong.aut"
    words = ("coherence", "study", "sr2", "--property", "never x")
    assert status(*words, "--export", str(wrong))[0] == 2
    assert not wrong.exists()
