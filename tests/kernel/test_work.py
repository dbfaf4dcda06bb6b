"""Work on resources: a latency, then a share of the bandwidth."""

import pytest

from pysmpi.kernel.activities import Constraint
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.plan import Transport
from pysmpi.kernel.work import Work


def test_work_shares_what_it_uses():
    engine = Engine(Transport(), 1)
    disk = Constraint(100.0, "disk")
    ends = {}

    def begin(name, latency, amount):
        def ended():
            ends[name] = engine.now

        work = Work(engine, latency, amount, 100.0, [disk], [1.0], ended)
        work.start()
        return work.request

    requests = [begin("long", 0.0, 150.0), begin("late", 1.0, 25.0), begin("none", 3.0, 0.0)]
    assert not any(request.done for request in requests)
    engine.run()
    # From 1 s on the two have 50 a second each, until the late one is done at 1.5 s.
    assert ends == pytest.approx({"late": 1.5, "long": 1.75, "none": 3.0})
    assert [request.time for request in requests] == pytest.approx([1.75, 1.5, 3.0])
    assert disk.count == 0


def test_work_without_latency_or_amount_is_done_at_once():
    engine = Engine(Transport(), 1)
    work = Work(engine, 0.0, 0.0, 1.0, [], [])
    work.start()
    assert work.request.done
