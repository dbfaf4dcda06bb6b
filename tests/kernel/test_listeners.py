"""Each listener hears of the events for which it has methods."""

import pytest
from greenlet import getcurrent, greenlet
from test_engine import Wire

from pysmpi.kernel.core import Core
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.listeners import EVENTS, Listeners
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Context, Receive, Send
from pysmpi.kernel.schedule import Schedule


class Everything:
    """Writes down the names of all events of the kernel, with their dates."""

    def __init__(self):
        self.heard = []

    def request_started(self, request, process, now):
        self.heard.append(("started", type(request).__name__, process.pid, now))

    def request_completed(self, request, now):
        self.heard.append(("completed", type(request).__name__, now))

    def message_matched(self, send, receive, now):
        self.heard.append(("matched", send.nbytes, now))

    def flow_started(self, send, now):
        self.heard.append(("flow", now))

    def flow_ended(self, send, now):
        self.heard.append(("arrived", now))

    def wait_ended(self, process, request, now):
        self.heard.append(("awaited", process.pid, type(request).__name__, now))


def run(programs, *listeners):
    """Two processes on a wire of 100 bytes/s and 1 s of latency, heard by `listeners`."""
    engine = Engine(Wire(eager=True, detached=False), len(programs))
    for listener in listeners:
        engine.listeners.add(listener)
    processes = [Process(engine, i, i, Core(10.0)) for i in range(len(programs))]
    context = Context(1, processes)
    hub = getcurrent()
    for process, program in zip(processes, programs):
        process.resume = greenlet(lambda p=program, q=process: p(q, context)).switch
        process.suspend = hub.switch
        process.launch()
    engine.run()
    return engine


def sender(process, context):
    process.start_and_wait(Send(context, 0, 1, 0, 100))


def receiver(process, context):
    process.start_and_wait(Receive(context, 0, 1, 0, 100))


def test_one_message_is_told_from_its_start_to_the_ends_of_the_waits():
    everything = Everything()
    run([sender, receiver], everything)
    assert everything.heard == [
        ("started", "Send", 0, 0.0),
        ("flow", 0.0),
        ("started", "Receive", 1, 0.0),
        ("matched", 100, 0.0),
        ("arrived", 2.0),
        ("completed", "Send", 2.0),
        ("awaited", 0, "Send", 2.0),
        ("completed", "Receive", 2.0),
        ("awaited", 1, "Receive", 2.0),
    ]


def test_a_wait_for_several_is_ended_by_the_last():
    everything = Everything()

    def both(process, context):
        small, large = Receive(context, 0, 1, 1, 100), Receive(context, 0, 1, 2, 300)
        process.exchange([large, small], [large, small])
        everything.heard.append(("capacity", everything.ended.nbytes))

    def two(process, context):
        process.exchange([Send(context, 0, 1, 1, 100), Send(context, 0, 1, 2, 300)], [])

    def wait_ended(process, request, now):
        everything.ended = request

    everything.wait_ended = wait_ended
    run([two, both], everything)
    assert everything.heard[-1] == ("capacity", 300)


def test_steps_of_a_schedule_are_told_like_calls():
    everything = Everything()
    there, back = Schedule(), Schedule()
    there.send(1, 100)
    back.recv(0, 100)

    run(
        [
            lambda process, context: process.execute(there, context, 0, 7),
            lambda process, context: process.execute(back, context, 1, 7),
        ],
        everything,
    )
    kinds = [event[0] for event in everything.heard]
    assert kinds.count("started") == kinds.count("completed") == kinds.count("awaited") == 2


def test_several_listen_and_each_hears_what_it_has_methods_for():
    class Matches:
        def __init__(self):
            self.number = 0

        def message_matched(self, send, receive, now):
            self.number += 1

    everything, matches = Everything(), Matches()
    engine = run([sender, receiver], everything, matches)
    assert matches.number == 1 and len(everything.heard) == 9
    engine.listeners.remove(everything)
    assert engine.listeners.flow_started is None
    assert engine.listeners.message_matched == [matches.message_matched]
    engine.listeners.remove(matches)
    assert all(getattr(engine.listeners, event) is None for event in EVENTS)


def test_a_request_whose_start_nobody_heard_is_not_told():
    late = Everything()

    def starting(process, context):
        send = Send(context, 0, 1, 0, 100)
        process.start(send)
        process.engine.listeners.add(late)
        process.wait([send])

    run([starting, receiver])
    assert ("completed", "Send", pytest.approx(2.0)) not in late.heard
    assert ("awaited", 0, "Send", pytest.approx(2.0)) in late.heard


def test_an_event_that_is_not_of_the_kernel_is_told_by_name():
    class Files:
        def file_accessed(self, *arguments):
            self.arguments = arguments

    listeners, files = Listeners(), Files()
    listeners.notify("file_accessed", 1)
    listeners.add(files)
    listeners.notify("file_accessed", "f", 0, "read", 10, 20)
    assert files.arguments == ("f", 0, "read", 10, 20)


class Waits:
    def __init__(self):
        self.heard = []

    def wait_begun(self, process, requests, all, now):
        names = [type(request).__name__ for request in requests]
        self.heard.append(("begun", process.pid, names, all, now))

    def wait_ended(self, process, request, now):
        self.heard.append(("ended", process.pid, type(request).__name__, now))


def test_the_begin_of_a_wait_is_told_with_its_requests():
    waits = Waits()
    run([sender, receiver], waits)
    assert waits.heard == [
        ("begun", 0, ["Send"], True, 0.0),
        ("begun", 1, ["Receive"], True, 0.0),
        ("ended", 0, "Send", 2.0),
        ("ended", 1, "Receive", 2.0),
    ]


def test_waits_of_schedules_and_for_complete_requests_and_sleeps_are_told():
    def first(process, context):
        schedule = Schedule()
        schedule.isend(1, 100)
        schedule.irecv(1, 100)
        schedule.waitall()
        schedule.recv(1, 100)
        process.execute(schedule, context, 0, 7)

    def second(process, context):
        schedule = Schedule()
        schedule.isend(0, 100)
        schedule.irecv(0, 100)
        schedule.waitall()
        schedule.send(0, 100)
        process.execute(schedule, context, 1, 7)
        done = Receive(context, 0, 1, 9, 0)
        done.done = True
        process.wait_any([done])
        process.sleep(1.0)

    waits = Waits()
    run([first, second], waits)
    begun = [event[:4] for event in waits.heard if event[0] == "begun"]
    assert begun.count(("begun", 0, ["Send", "Receive"], True)) == 1
    assert ("begun", 0, ["Receive"], True) in begun
    assert ("begun", 1, ["Send"], True) in begun
    assert ("begun", 1, ["Receive"], False) in begun
    slept, ended = waits.heard[-2:]
    assert slept[:3] in [("begun", 1, []), ("begun", 1, ["KernelRequest"])]
    assert ended == ("ended", 1, "KernelRequest", slept[4] + 1.0)
