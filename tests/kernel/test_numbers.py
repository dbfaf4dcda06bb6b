"""Lists of all ranks share the objects of numbers of ranks."""

from pysmpi.kernel import numbers
from pysmpi.kernel.schedule import Schedule


def schedule_to(*peers):
    schedule = Schedule()
    for peer in peers:
        schedule.send(peer, 8)
    schedule.compact_peers()
    return schedule


def test_schedules_share_the_objects_of_their_peers():
    one, other = schedule_to(70_000, 3), schedule_to(5, 70_000 + int("0"))
    assert one.peers == [70_000, 3]
    assert other.peers == [5, 70_000]
    assert one.peers[0] is other.peers[1]


def test_numbers_keep_their_values():
    given = [-1_000_000_007, -1, 0, 1, 300, 299, numbers.MOST, 1 << 70]
    assert [numbers.shared(number) for number in given] == given


def test_the_end_of_a_run_releases_the_objects():
    before = numbers.shared(50_000)
    numbers.forget()
    after = numbers.shared(50_000)
    assert after == before
    assert after is not before
    assert numbers.shared(50_000) is after
