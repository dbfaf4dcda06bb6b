"""Schedules in the format GOAL: read, replayed, and refused with the line that is wrong."""

import re

import pytest

from pysmpi.api import run
from pysmpi.errors import UsageError
from pysmpi.kernel.matching import ANY
from pysmpi.replay import Replay
from pysmpi.replay.goal import is_goal, read_goal
from pysmpi.replay.goal_schedule import CALC, RECV, SEND

# The parameters that LogGOPSim has without options, in ns and ns a byte.
LOGGOPSIM = {
    "model": "loggps",
    "platform": "cluster",
    "map_by": "node",
    "cfg": {
        "loggp/L": "2500ns", "loggp/os": "0:1500ns:0", "loggp/or": "0:1500ns:0",
        "loggp/g": "1000ns", "loggp/G": "6e-9", "loggps/S": "65535",
    },
}  # fmt: skip


@pytest.fixture
def replayed(tmp_path):
    def play(text, **options):
        (tmp_path / "a.goal").write_text(text)
        return Replay([(tmp_path / "a.goal", 0.0)], **(options or LOGGOPSIM)).run()

    return play


def schedule(ranks):
    """The text of a schedule, from the lines of each rank."""
    parts = [f"num_ranks {len(ranks)}\n"]
    parts += [f"rank {rank} {{\n{text}\n}}\n" for rank, text in enumerate(ranks)]
    return "\n".join(parts)


def broadcast(ranks, nbytes):
    """A binomial tree: each rank sends to those whose highest bit is above its own."""
    texts = []
    for rank in range(ranks):
        lines = []
        if rank:
            lines.append(f"l1: recv {nbytes}b from {rank - (1 << rank.bit_length() - 1)} tag 0")
        bits = [k for k in range(ranks.bit_length()) if 1 << k > rank and rank + (1 << k) < ranks]
        for number, k in enumerate(bits, 2):
            lines.append(f"l{number}: send {nbytes}b to {rank + (1 << k)} tag 0")
            if rank:
                lines.append(f"l{number} requires l1")
        texts.append("\n".join(lines))
    return schedule(texts)


def test_trees_take_the_time_that_loggopsim_prints(replayed):
    # LogGOPSim 1.1: "Maximum finishing time at host 31: 27500", "Host 15: 120280".
    assert replayed(broadcast(32, 1)).seconds == pytest.approx(27_500e-9, rel=2e-3)
    assert replayed(broadcast(16, 4096)).seconds == pytest.approx(120_280e-9, rel=1e-3)


def test_all_of_the_grammar_is_read(tmp_path):
    text = """/* a comment
       of two lines */
    num_ranks 2  // ranks
    rank 1 {
      a: calc 100 cpu 2
      b: send 5b to 0 tag 7 cpu 1 nic 0
      b irequires a
    }
    rank 0 {
      x1: recv 5b from -1 tag -1 nic 3
      x2: calc 1
      x2 requires x1
      recv 3 b from 1
    }
    """
    path = tmp_path / "a.goal"
    path.write_text(text)
    assert is_goal(str(path))
    first, second = read_goal(str(path))
    assert first.kinds == [RECV, CALC, RECV] and second.kinds == [CALC, SEND]
    assert (first.amounts, second.amounts) == ([5, 1, 3], [100, 5])
    assert (first.peers, first.tags) == ([ANY, 0, 1], [ANY, 0, 0])
    assert (second.peers, second.tags, second.cpus) == ([0, 0], [0, 7], [2, 1])
    assert first.after_end == {0: [1]} and second.after_start == {0: [1]}
    assert first.missing == [0, 1, 0] and second.missing == [0, 1]
    (tmp_path / "a.ti").write_text("0 compute 1e6\n")
    assert not is_goal(str(tmp_path / "a.ti")) and not is_goal(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("num_ranks 0\n", 1, "num_ranks N"),
        ("num_ranks 1\nrank 1 {\n}\n", 2, "a new rank from 0 to 0"),
        ("num_ranks 1\nrank 0 {\n}\nrank 0 {\n}\n", 4, "a new rank"),
        ("num_ranks 1\nrank 0 {\na: wait 3\n}\n", 3, "an operation of GOAL"),
        ("num_ranks 1\nrank 0 {\na: calc -3\n}\n", 3, "an operation of GOAL"),
        ("num_ranks 1\nrank 0 {\na: calc 3\na: calc 3\n}\n", 4, "a new label"),
        ("num_ranks 1\nrank 0 {\na: calc 3\na requires b\n}\n", 4, "the label of an operation"),
        ("num_ranks 1\nrank 0 {\na: send 3b to 1 tag 0\n}\n", 3, "a rank from 0 to 0"),
        ("num_ranks 2\nrank 0 {\na: send 3b to 1 tag -1\n}\n", 3, "a tag of a send"),
        ("num_ranks 1\ncalc 3\n", 2, "rank N {"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, text, line, expected):
    (tmp_path / "a.goal").write_text(text)
    with pytest.raises(UsageError, match=rf"a\.goal, line {line}: expected .*{expected}"):
        read_goal(str(tmp_path / "a.goal"))


def test_a_file_that_is_cut_short_is_refused(tmp_path):
    (tmp_path / "a.goal").write_text("num_ranks 1\nrank 0 {\n")
    with pytest.raises(UsageError, match="expected } at the end"):
        read_goal(str(tmp_path / "a.goal"))


def test_computes_of_one_processor_take_turns(replayed):
    for cpus, wanted in (((0, 0, 0), 6e-3), ((0, 1, 2), 3e-3), ((0, 1, 1), 5e-3)):
        lines = [f"l{k}: calc {k}000000 cpu {cpu}" for k, cpu in enumerate(cpus, 1)]
        assert replayed(schedule(["\n".join(lines)])).seconds == pytest.approx(wanted)


def test_requirements_of_ends_and_of_starts(replayed):
    for word, wanted in (("requires", 3e-3), ("irequires", 2e-3)):
        # The receive ends after 2 ms; its start alone holds nothing up.
        first = f"r: recv 1b from 1\nc: calc 1000000\nc {word} r"
        ranks = [first, "w: calc 2000000\ns: send 1b to 0\ns requires w"]
        assert replayed(schedule(ranks)).seconds == pytest.approx(wanted, rel=0.01)


def test_a_processor_goes_on_while_messages_are_on_their_way(replayed):
    # Each message is computed on as it comes, whatever the order of the lines.
    first = "a: recv 1b from 1\nb: recv 1b from 2\nx: calc 1000000\nx requires a\n"
    first += "y: calc 1000000\ny requires b"
    slow, fast = (f"w: calc {n}000000\ns: send 1b to 0\ns requires w" for n in (3, 1))
    assert replayed(schedule([first, slow, fast])).seconds == pytest.approx(4e-3, rel=0.01)


def test_messages_that_nobody_sends_are_named(replayed):
    with pytest.raises(UsageError, match=r"1 rank never ends, .*rank 0 at \S*a\.goal, line 5"):
        replayed(schedule(["a: calc 10\nr: recv 1b from 1", "a: calc 10"]))
    cycle = "a: calc 10\nb: calc 10\na requires b\nb requires a"
    with pytest.raises(UsageError, match=r"rank 0 at \S*a\.goal, line 4"):
        replayed(schedule([cycle]))


def test_a_run_that_is_written_and_replayed_takes_its_time(tmp_path):
    program = tmp_path / "ring.py"
    program.write_text(
        "import numpy as np\n"
        "from mpi4py import MPI\n"
        "comm = MPI.COMM_WORLD\n"
        "data, back = np.zeros(20_000), np.zeros(20_000)\n"
        "for step in range(5):\n"
        "    other = comm.irecv(source=(comm.rank - 2) % comm.size, tag=9)\n"
        "    comm.Sendrecv(data, (comm.rank + 1) % 5, recvbuf=back, source=(comm.rank - 1) % 5)\n"
        "    comm.send(b'x' * 1000 * step, (comm.rank + 2) % comm.size, tag=9)\n"
        "    comm.Allreduce(data[:10], back[:10])\n"
        "    other.wait()\n"
    )
    trace = tmp_path / "ring.goal"
    options = {"platform": "graphene"}
    result = run(program, 5, compute="20us", trace=str(trace), **options)
    again = Replay([(trace, 0.0)], **options).run()
    assert again.nprocs == 5
    assert again.seconds == pytest.approx(result.seconds, rel=0.02)
    assert again.messages >= result.messages
    # Two schedules share a machine, and each has its own begin.
    two = Replay([(trace, 0.0), (trace, 0.5)], **options).run()
    assert two.instances[1]["end_seconds"] == pytest.approx(0.5 + again.seconds, rel=0.1)


def test_what_needs_the_calls_of_a_program_is_refused(tmp_path):
    from pysmpi.trace.model import Recording

    (tmp_path / "a.goal").write_text(schedule(["a: calc 10"]))
    replay = Replay([(tmp_path / "a.goal", 0.0)], platform="graphene")
    with pytest.raises(UsageError, match=re.escape("a.goal has no calls of a program")):
        replay.run(Recording(operations=False))
