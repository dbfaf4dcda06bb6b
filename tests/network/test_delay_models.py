"""Delay models beyond one message: ports of hosts, the rendezvous, strides of datatypes."""

from __future__ import annotations

import pytest

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.memory.middleware import Cost, binomial_2log, binomial_log_3p
from pysmpi.platform.stride_table import parse as parse_table

MACHINE = """\
name: lab
clusters:
  - name: lab
    hosts: n[0-7]
    cores: 4
    sockets: 2
    link: {bandwidth: 1GBps, latency: 5us}
    loopback: {bandwidth: 4GBps, latency: 1us}
config: {smpi/os: "0:1e-6:1e-10", smpi/or: "0:2e-6:2e-10"}
models:
  logp: {loggp/g: 4us, logp/packet: 1000}
  loggp: {loggp/L: 10us, loggp/g: 3us, loggp/G: 1e-9}
  loggps: {loggp/L: 10us, loggp/g: 3us, loggp/G: 1e-9, loggps/S: 100000}
"""
L, G, GAP = 10e-6, 1e-9, 3e-6
OS, OR = 1e-6 + 1e-10, 2e-6 + 2e-10  # of one byte


@pytest.fixture
def lab(tmp_path):
    """Runs a main on the machine; its return values."""
    path = tmp_path / "lab.yaml"
    path.write_text(MACHINE)

    def run(main, ranks, model, *args, map_by="node", **options):
        options["cfg"] = {"smpi/wtime": "0", **options.pop("cfg", {})}
        return pysmpi.run(
            main, ranks, platform=path, model=model, args=args, map_by=map_by, compute="none",
            **options,
        ).returns  # fmt: skip

    return run


def one_to_all(nbytes):
    """The root sends to each other rank; the date of each end, on a common clock."""
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    buffer = numpy.zeros(nbytes, "b")
    if comm.rank == 0:
        for peer in range(1, comm.size):
            comm.Send(buffer, peer)
    else:
        comm.Recv(buffer, 0)
    return MPI.Wtime()


def all_to_one(nbytes):
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    buffer = numpy.zeros(nbytes, "b")
    dates = []
    if comm.rank == 0:
        for peer in range(1, comm.size):
            comm.Recv(buffer, peer)
            dates.append(MPI.Wtime())
    else:
        comm.Send(buffer, 0)
    return dates


@pytest.mark.parametrize("nbytes", [1, 1000, 50000])
def test_the_card_of_a_sender_takes_one_message_after_the_other(lab, nbytes):
    """LogGP: the i-th message leaves i ((k-1) G + g) after the first, or i os if that is longer."""
    found = lab(one_to_all, 4, "loggp", nbytes)
    each = max((nbytes - 1) * G + GAP, OS)
    for i, date in enumerate(found[1:]):
        assert date == pytest.approx(OS + i * each + (nbytes - 1) * G + L + OR, rel=1e-9)
    # The sender does not wait for its card.
    assert found[0] == pytest.approx(3 * OS, rel=1e-9)


@pytest.mark.parametrize("nbytes", [1, 1000, 50000])
def test_the_card_of_a_receiver_takes_one_message_after_the_other(lab, nbytes):
    found = lab(all_to_one, 4, "loggp", nbytes)[0]
    each = max((nbytes - 1) * G + GAP, OR)
    for i, date in enumerate(found):
        assert date == pytest.approx(OS + i * each + (nbytes - 1) * G + L + OR, rel=1e-9)


def test_ranks_of_one_host_share_its_card(lab):
    """Two ranks of a host send to two other hosts at once."""

    def main():
        import numpy
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        buffer = numpy.zeros(50001, "b")
        if comm.rank % 4 < 2 and comm.rank < 4:
            comm.Send(buffer, 4 * (comm.rank + 1))
        elif comm.rank in (4, 8):
            comm.Recv(buffer, comm.rank // 4 - 1)
        return MPI.Wtime()

    found = lab(main, 12, "loggp", map_by="core")
    first = OS + 50000 * G + L + OR
    assert sorted((found[4], found[8])) == pytest.approx([first, first + 50000 * G + GAP])


def test_messages_inside_a_host_take_no_card(lab):
    """Two pairs of one host at once: neither waits, and G and L are those of the loopback."""

    def main():
        import numpy
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        buffer = numpy.zeros(40001, "b")
        if comm.rank < 2:
            comm.Send(buffer, comm.rank + 2)
        else:
            comm.Recv(buffer, comm.rank - 2)
        return MPI.Wtime()

    found = lab(main, 4, "loggp", map_by="core")
    assert found[2:] == pytest.approx([OS + 40000 / 4e9 + 1e-6 + OR] * 2)


def test_logp_s_packets_pass_both_cards_in_a_row(lab):
    """Three packets: T = os + 2 g + L + or; the next message's first packet comes g later."""
    found = lab(one_to_all, 3, "logp", 3000)
    gap = 4e-6
    first = OS + 2 * gap + L + OR
    # The sender's second message begins once its processor is done with the first.
    assert found[0] == pytest.approx(2 * (OS + 2 * gap))
    assert found[1] == pytest.approx(first)
    # From its first packet on the card leaves g between all packets.
    assert found[2] == pytest.approx(first + 3 * gap)
    gathered = lab(all_to_one, 3, "logp", 3000)[0]
    assert gathered == pytest.approx([first, first + 3 * gap])


def late(seconds_of_receiver, call, nbytes=200000):
    import time

    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    buffer = numpy.zeros(nbytes, "b")
    time.sleep((1.0, 1.0 + seconds_of_receiver)[comm.rank] - MPI.Wtime())
    if comm.rank:
        comm.Recv(buffer, 0)
        return MPI.Wtime() - 1.0
    if call == "Isend":
        request = comm.Isend(buffer, 1)
        begun = MPI.Wtime() - 1.0
        request.Wait()
        return begun, MPI.Wtime() - 1.0
    getattr(comm, call)(buffer, 1)
    return MPI.Wtime() - 1.0


@pytest.mark.parametrize("delay", [0.0, 5e-6, 1e-3])
def test_the_rendezvous_of_loggps(lab, delay):
    """T4 + T5 + T1 of the sender, which goes on while bytes travel; the receiver T2 + T3 more."""
    nbytes = 200000
    sent, received = lab(late, 2, "loggps", delay, "Send")
    o_s, o_r = 1e-6, 2e-6
    t4 = max(L + o_s, delay) + o_r
    t5 = o_r + L + o_s
    t1, t2, t3 = o_s + nbytes * 1e-10, L + nbytes * G, o_r + nbytes * 2e-10
    assert sent == pytest.approx(t4 + t5 + t1, rel=1e-9, abs=1e-12)
    assert received == pytest.approx(t4 + t5 + t1 + t2 + t3, rel=1e-9, abs=1e-12)


def test_a_non_blocking_send_of_loggps_costs_o(lab):
    nbytes = 50000
    (begun, ended), received = lab(late, 2, "loggps", 0.0, "Isend", nbytes)
    assert begun == ended == pytest.approx(1e-6, rel=1e-9)
    # The bytes leave when a blocking send would let them.
    assert received == pytest.approx(
        1e-6 + nbytes * 1e-10 + L + nbytes * G + 2e-6 + nbytes * 2e-10, rel=1e-9
    )


def test_a_synchronous_send_waits_for_its_receiver(lab):
    sent, received = lab(late, 2, "loggps", 1e-3, "Ssend", 100)
    assert sent > 1e-3 and received > sent


def test_loggps_has_no_contention_in_the_network_but_hybrid_has():
    """Ranks of two cabinets of graphene exchange 1 MB: the trunk is the bottleneck, or nothing."""

    def main():
        import numpy
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        mine, theirs = numpy.zeros(1 << 20, "b"), numpy.zeros(1 << 20, "b")
        comm.Barrier()
        begin = MPI.Wtime()
        comm.Sendrecv(mine, (comm.rank + 36) % 72, recvbuf=theirs, source=(comm.rank + 36) % 72)
        return MPI.Wtime() - begin

    def slowest(model):
        return max(pysmpi.run(main, 72, platform="graphene", model=model, compute="none").returns)

    assert slowest("hybrid") > 2 * slowest("loggps")


# Middleware models.

STRIDED = """\
name: strided
clusters:
  - name: lab
    hosts: n[0-1]
    cores: 4
    sockets: 2
    link: {bandwidth: 1GBps, latency: 5us}
config:
  lognp/o: "0:4e-6:1e-9"
  lognp/l: "0:1e-8:1e-10;64:3e-8:2e-10"
  lognp/o-node: "0:2e-6:5e-10"
  lognp/l-node: "0:5e-9"
  lognp/o-socket: "0:1e-6:2e-10"
  lognp/l-socket: "0:2e-9"
"""


@pytest.fixture
def strided(tmp_path):
    path = tmp_path / "strided.yaml"
    path.write_text(STRIDED)

    def run(model, stride, ends, receiver=None):
        """Seconds of a message of 1,024 ints whose starts are `stride` ints apart."""
        return pysmpi.run(
            column, 8, platform=path, model=model, args=(stride, receiver or stride, ends),
            map_by="core", compute="none", cfg={"smpi/wtime": "0"},
        ).returns[ends[1]]  # fmt: skip

    return run


def column(stride, other, ends):
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank not in ends:
        return None
    mine = stride if comm.rank == ends[0] else other
    datatype = MPI.INT.Create_vector(1024, 1, mine).Commit()
    data = [numpy.zeros(1024 * mine, "i"), 1, datatype]
    begin = MPI.Wtime()
    if comm.rank == ends[0]:
        comm.Send(data, ends[1])
    else:
        comm.Recv(data, ends[0])
    return MPI.Wtime() - begin


S, PIECES = 4096, 1024
OUT = 4e-6 + S * 1e-9
NET = 10e-6 + S / 1e9
HOPS = 10e-6 + 2 * S / 1e9
NEAR, FAR = PIECES * 1e-8 + S * 1e-10, PIECES * 3e-8 + S * 2e-10
NODE, SOCKET = 2e-6 + S * 5e-10, 1e-6 + S * 2e-10


@pytest.mark.parametrize("model", ["log_nP", "log_3P", "mlog_nP", "2log_23P"])
def test_strides_are_those_of_the_datatype_that_is_sent(strided, model):
    net = HOPS if model in ("log_nP", "mlog_nP") else NET
    between = (0, 4)
    assert strided(model, 1, between) == pytest.approx(2 * OUT + net)
    assert strided(model, 2, between) == pytest.approx(2 * (OUT + NEAR) + net)
    assert strided(model, 128, between) == pytest.approx(2 * (OUT + FAR) + net)
    # Each end has its own datatype.
    assert strided(model, 128, between, 2) == pytest.approx(2 * OUT + FAR + NEAR + net)


@pytest.mark.parametrize(
    ("model", "socket", "node"),
    [
        ("log_3P", 2 * (OUT + NEAR) + NET, 2 * (OUT + NEAR) + NET),
        ("2log_23P", 2 * (NODE + PIECES * 5e-9), 2 * (NODE + PIECES * 5e-9)),
        ("mlog_nP", 2 * (SOCKET + PIECES * 2e-9), 2 * (NODE + PIECES * 5e-9)),
    ],
)
def test_levels_of_communication(strided, model, socket, node):
    assert strided(model, 2, (0, 1)) == pytest.approx(socket)
    assert strided(model, 2, (0, 2)) == pytest.approx(node)


def test_a_name_may_have_its_braces(strided):
    assert strided("2log_{2,3}P", 2, (0, 4)) == strided("2log_23P", 2, (0, 4))


def test_broadcasts_take_what_the_formulas_of_the_paper_say(tmp_path):
    """Binomial trees of 64 ranks on eight nodes: equations of section IV-B, in a run."""

    def main():
        import numpy
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        comm.Bcast(numpy.zeros(4096, "b"))
        return MPI.Wtime()

    path = tmp_path / "nodes.yaml"
    path.write_text(STRIDED.replace("n[0-1]", "n[0-7]").replace("cores: 4", "cores: 8"))

    def run(model):
        return max(
            pysmpi.run(
                main, 64, platform=path, model=model, map_by="core", compute="none",
                coll={"bcast": "binomial_tree"}, cfg={"smpi/wtime": "0"},
            ).returns
        )  # fmt: skip

    between, inside = Cost(2 * OUT, 0.0, NET), Cost(2 * NODE, 0.0)
    # The rank farthest from the root is reached by three messages between nodes, three inside.
    assert run("log_3P") == pytest.approx(binomial_log_3p(64, between), rel=0.01)
    assert run("2log_23P") == pytest.approx(binomial_2log(64, 3, inside, between), rel=0.01)


def test_costs_by_size_and_stride_are_a_table():
    table = parse_table("1000/8:1us; 1000/64:2us;4000/8:2us;4000/64:8e-6")
    assert table.at(1000, 8) == pytest.approx(1e-6) and table.at(4000, 64) == pytest.approx(8e-6)
    assert table.at(2500, 8) == pytest.approx(1.5e-6)  # halfway between the sizes
    assert table.at(1000, 16) == pytest.approx(1e-6 + 1e-6 / 3)  # a doubling of three
    assert table.at(500, 4) == pytest.approx(0.5e-6) and table.at(8000, 500) == pytest.approx(16e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected cells bytes/stride:time"),
        ("1024:2us", "got '1024:2us'"),
        ("8/8:1us;8/8:2us", "expected a cell once, got 8/8 again"),
        ("8/8:1us;16/64:2us", "got none for 8/64"),
        ("8/8:soon", "expected a time"),
    ],
)
def test_wrong_tables_are_refused(text, message):
    with pytest.raises(UsageError) as caught:
        parse_table(text)
    assert message in str(caught.value)


def test_a_table_gives_the_latency_of_a_level(strided, tmp_path):
    table = "4096/8:10us;4096/512:40us"
    text = STRIDED.replace('lognp/l: "0:1e-8:1e-10;64:3e-8:2e-10"', f'lognp/f: "{table}"')
    (tmp_path / "strided.yaml").write_text(text)
    between = (0, 4)
    assert strided("log_3P", 1, between) == pytest.approx(2 * OUT + NET)
    assert strided("log_3P", 2, between) == pytest.approx(2 * (OUT + 10e-6) + NET)
    assert strided("log_3P", 128, between) == pytest.approx(2 * (OUT + 40e-6) + NET)
