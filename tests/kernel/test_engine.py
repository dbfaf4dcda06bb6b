"""Protocols, schedules and the clock, on a machine of two links."""

import os
import subprocess
import sys

import pytest
from greenlet import getcurrent, greenlet

from pysmpi.kernel.activities import Constraint
from pysmpi.kernel.core import Core
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.plan import Plan, Transport
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import BUFFERED, SYNCHRONOUS, Context, Receive, Send, Transfer
from pysmpi.kernel.schedule import Schedule


class Wire(Transport):
    """One shared wire of 100 bytes/s and 1 s latency; sends cost 0.25 s, receives 0.5 s."""

    def __init__(self, eager=False, detached=True):
        self.link = Constraint(100.0, "wire")
        self.eager, self.detached = eager, detached

    def plan(self, source, destination, nbytes):
        return Plan(
            1.0, float(nbytes), 100.0, constraints=[self.link], send_cost=0.25, isend_cost=0.25,
            recv_cost=0.5, eager=self.eager, detached=self.detached,
        )  # fmt: skip


def simulate(programs, transport, speed=10.0, one_core=False):
    """Run generators-free programs `f(process, context)`; return engine and end dates."""
    engine = Engine(transport, len(programs))
    shared = Core(speed)
    cores = [shared if one_core else Core(speed) for _ in programs]
    processes = [Process(engine, i, i, core) for i, core in enumerate(cores)]
    for core in cores:
        core.residents += 1
    context = Context(1, processes)
    hub = getcurrent()
    ends = [None] * len(programs)

    def body(i):
        programs[i](processes[i], context)
        processes[i].finish_compute()
        ends[i] = engine.now

    for i, process in enumerate(processes):
        process.resume = greenlet(lambda i=i: body(i)).switch
        process.suspend = hub.switch
        process.launch()
    engine.run()
    return engine, ends


def send(nbytes, mode=0, delay=0.0, immediate=False, to=1, me=0):
    def program(process, context):
        process.sleep(delay)
        request = Send(context, me, to, 0, nbytes, mode)
        request.immediate = immediate
        process.start_and_wait(request)

    return program


def receive(nbytes, delay=0.0, source=0, me=1):
    def program(process, context):
        process.sleep(delay)
        process.start_and_wait(Receive(context, source, me, 0, nbytes))

    return program


def test_detached_waits_for_the_receive_to_flow():
    _, ends = simulate([send(100), receive(100, delay=5.0)], Wire())
    assert ends == [0.25, pytest.approx(5.0 + 1.0 + 1.0 + 0.5)]


def test_eager_flows_at_once():
    _, ends = simulate([send(100), receive(100, delay=5.0)], Wire(eager=True))
    assert ends == [0.25, pytest.approx(5.5)]
    _, ends = simulate([send(100, delay=5.0), receive(100)], Wire(eager=True))
    assert ends == [5.25, pytest.approx(5.25 + 2.0 + 0.5)]


def test_rendezvous_holds_both():
    _, ends = simulate([send(100), receive(100, delay=5.0)], Wire(detached=False))
    assert ends == [pytest.approx(7.0), pytest.approx(7.0)]


def test_synchronous_never_lets_go_early():
    _, ends = simulate([send(100, SYNCHRONOUS), receive(100, delay=5.0)], Wire(eager=True))
    assert ends == [pytest.approx(7.0), pytest.approx(7.0)]


def test_buffered_always_lets_go():
    _, ends = simulate([send(100, BUFFERED), receive(100, delay=5.0)], Wire(detached=False))
    assert ends == [0.25, pytest.approx(7.5)]


@pytest.mark.parametrize("ends_at", [(1, 0), (0, 1)])
def test_a_transfer_needs_no_receive(ends_at):
    landed = []

    def program(process, context):
        source, destination = ends_at

        def land(transfer):
            landed.append((process.engine.now, transfer.done, transfer.nbytes))

        transfer = Transfer(context, source, destination, 100, land)
        process.start(transfer)
        assert process.engine.now == 0.25 and not landed
        process.wait([transfer])

    engine, ends = simulate([program, lambda p, c: None], Wire(detached=False))
    assert ends == [pytest.approx(0.25 + 1.0 + 1.0), 0.0]
    assert landed == [(ends[0], True, 100)]
    assert (engine.messages, engine.bytes) == (1, 100)


def test_two_messages_share_the_wire():
    programs = [send(100, to=2, me=0), send(100, to=3, me=1),
                receive(100, source=0, me=2), receive(100, source=1, me=3)]  # fmt: skip
    _, ends = simulate(programs, Wire())
    assert ends[2] == ends[3] == pytest.approx(0.25 + 1.0 + 2.0 + 0.5)


def test_completions_are_paid_one_after_the_other():
    def gather(process, context):
        receives = [Receive(context, i, 3, 0, 0) for i in range(3)]
        process.exchange(receives, receives)

    programs = [send(0, to=3, me=i) for i in range(3)] + [gather]
    _, ends = simulate(programs, Wire())
    assert ends[3] == pytest.approx(1.25 + 3 * 0.5)


def test_compute_shares_a_core():
    def compute(seconds):
        def program(process, context):
            process.debt += seconds

        return program

    _, ends = simulate([compute(1.0), compute(3.0)], Wire(), one_core=True)
    assert ends == [pytest.approx(2.0), pytest.approx(4.0)]
    _, ends = simulate([compute(1.0), compute(3.0)], Wire())
    assert ends == [1.0, 3.0]


def test_schedule_runs_without_the_program():
    def collective(rank, steps):
        def program(process, context):
            process.execute(steps, context, rank, 7)

        return program

    one, other = Schedule(), Schedule()
    one.send(1, 100)
    one.recv(1, 100)
    one.sleep(0.5)
    other.sendrecv(0, 100, 0, 100)
    other.reduce(10)
    other.waitall()
    _, ends = simulate([collective(0, one), collective(1, other)], Wire())
    # The two messages share the wire: 2 s of transfer after 1.25 s.
    assert ends == [pytest.approx(3.25 + 0.5 + 0.5), pytest.approx(3.25 + 0.5)]


def test_wait_any_and_finish():
    def program(process, context):
        receives = [Receive(context, i, 2, 0, 1000) for i in range(2)]
        for request in receives:
            process.start(request)
        process.wait_any(receives)
        assert [r.done for r in receives] == [False, True]
        process.finish(receives[1])
        process.wait(receives)

    _, ends = simulate([send(100, to=2, me=0, delay=5), send(100, to=2, me=1), program], Wire())
    assert ends[2] == pytest.approx(5.0 + 0.25 + 2.0 + 0.5)


def test_truncation_is_noticed():
    seen = []

    def program(process, context):
        request = Receive(context, 0, 1, 0, 50)
        process.start_and_wait(request)
        seen.append((request.truncated, request.message.nbytes))

    simulate([send(100), program], Wire())
    assert seen == [(True, 100)]


def test_nobody_answers():
    engine, ends = simulate([receive(10, source=1, me=0), lambda p, c: None], Wire())
    assert ends == [None, 0.0]
    assert engine.queue.empty()


def test_a_control_chooses_among_messages():
    from pysmpi.kernel.choices import MATCH, Control

    def last(kind, options):
        return len(options) - 1 if kind == MATCH else 0

    got = []

    def program(process, context):
        from pysmpi.kernel.matching import ANY

        process.sleep(10.0)
        for _ in range(2):
            request = Receive(context, ANY, 2, ANY, 100)
            process.start_and_wait(request)
            got.append(request.message.source)

    def with_control(process, context):
        process.engine.decide_by(Control(process.engine, last))
        send(10, to=2, me=0)(process, context)

    second = send(10, to=2, me=1)
    simulate([send(10, to=2, me=0), second, program], Wire())
    simulate([with_control, second, program], Wire())
    assert got == [0, 1, 1, 0]


@pytest.mark.parametrize(
    "latency, volume, bound, factor",
    [
        (float("nan"), 1.0, 1.0, 1.0),
        (float("inf"), 1.0, 1.0, 1.0),
        (-1.0, 1.0, 1.0, 1.0),
        (0.0, float("nan"), 1.0, 1.0),
        (0.0, 1.0, float("inf"), 1.0),  # its end is unknown
        (0.0, 1.0, 0.0, 1.0),
        (0.0, 1.0, float("nan"), 1.0),
        (0.0, 1.0, 1.0, float("nan")),
    ],
)
def test_plans_whose_bytes_never_flow_are_refused(latency, volume, bound, factor):
    with pytest.raises(ValueError, match="a plan"):
        Plan(latency, volume, bound, factor=factor)
    Plan()


def test_a_stop_keeps_those_that_are_ready():
    from pysmpi.mpi.base.ranks import FreeTransport

    engine = Engine(FreeTransport(), 3)
    ran = []
    for number in range(3):
        process = Process(engine, number, number, Core(1e9))

        def resume(number=number):
            ran.append(number)
            engine.stop()

        process.resume = resume
        process.launch()
    for count in range(1, 4):
        engine.stopped = False
        engine.run()
        assert ran == list(range(count))


def test_tags_of_a_call_do_not_meet_those_of_others():
    with pytest.raises(AssertionError):
        Schedule().send(1, 8, tag=1024)
    Schedule().send(1, 8, tag=1023)


@pytest.mark.slow
def test_processes_that_run_for_ever_at_one_instant_end_the_run():
    # The limit of compiled code is a constant, which takes long to reach.
    program = """
import pysmpi.kernel.engine as engine
from pysmpi.kernel.core import Core
from pysmpi.kernel.process import Process
from pysmpi.mpi.base.ranks import FreeTransport

engine.MOST_RUNS = 100
kernel = engine.Engine(FreeTransport(), 1)
process = Process(kernel, 0, 0, Core(1e9))
process.resume = process.launch
process.launch()
kernel.run()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYSMPI_INTERPRETED": "1"},
    )  # fmt: skip
    assert done.returncode == 1
    assert "RuntimeError: 101 steps at t=0.0 s, and time stands still" in done.stderr
