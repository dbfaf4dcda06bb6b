"""Messages whose cost is worked out when they are sent and when they are matched."""

import pytest
from test_engine import receive, send, simulate

from pysmpi.kernel.plan import Plan, Transport
from pysmpi.kernel.requests import SYNCHRONOUS, Pricing, Transfer


class Growing(Pricing):
    """Each message costs its sender, its receiver and the wire one second more than the last."""

    def __init__(self):
        self.sent = self.received = 0
        self.seen = []

    def sending(self, send):
        self.sent += 1
        send.start_cost += self.sent

    def matched(self, send, receive):
        self.received += 1
        self.seen.append(send.payload)
        if send.detached:
            receive.finish_cost += self.received
        else:
            seconds = 10.0 * self.received
            send.plan = Plan(volume=send.nbytes, bound=send.nbytes / seconds)

    def moving(self, transfer):
        transfer.plan = Plan(volume=10.0, bound=2.0)


class Priced(Transport):
    def __init__(self, eager=True):
        self.pricing = Growing()
        self.eager = eager

    def plan(self, source, destination, nbytes):
        return Plan(
            send_cost=0.25, isend_cost=0.25, recv_cost=0.5, eager=self.eager,
            detached=self.eager, pricing=self.pricing,
        )  # fmt: skip


def twice(program):
    return lambda process, context: (program(process, context), program(process, context))


def test_overheads_of_both_sides_are_those_of_the_moment():
    transport = Priced()
    _, ends = simulate([twice(send(8)), twice(receive(8))], transport)
    # The second message is there at 1.25 + 2.25, when its receiver is long ready.
    assert ends == [pytest.approx(3.5), pytest.approx(3.5 + 2.5)]


def test_a_message_that_waits_for_its_receive_takes_the_plan_of_that_moment():
    transport = Priced(eager=False)
    _, ends = simulate([twice(send(8)), twice(receive(8))], transport)
    assert ends == [pytest.approx(1 + 10 + 2 + 20)] * 2
    _, ends = simulate([send(8, SYNCHRONOUS), receive(8, delay=3.0)], Priced())
    assert ends == [pytest.approx(3.0 + 10.0)] * 2


def test_bytes_without_a_receive_are_priced_too():
    landed = []

    def put(process, context):
        transfer = Transfer(context, 0, 1, 10, landed.append)
        process.start_and_wait(transfer)

    _, ends = simulate([put, lambda process, context: None], Priced())
    assert ends[0] == pytest.approx(0.25 + 5.0)
    assert len(landed) == 1
