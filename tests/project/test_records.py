"""Records are dataclasses, before and after their methods are generated."""

import copy
import dataclasses
import pickle

import pytest

from pysmpi.records import record


@record(frozen=True)
class Point:
    x: int
    y: int = 0

    def __repr__(self):
        return f"({self.x}, {self.y})"


@record
class Named:
    name: str
    points: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Derived(Named):
    more: int = 1


def fresh(frozen=True):
    """A record that nothing has used."""

    @record(frozen=frozen)
    class Fresh:
        a: int
        b: str = "b"

    return Fresh


def test_the_first_instance_is_like_all_others():
    kind = fresh()
    first, second = kind(1), kind(1)
    assert first == second and hash(first) == hash(second) and first != kind(2)
    assert repr(first).endswith("Fresh(a=1, b='b')")
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.a = 2
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        kind()


def test_methods_of_the_class_stay():
    assert repr(Point(1)) == "(1, 0)" and Point(1) == Point(1, 0)


def test_fields_are_known_without_an_instance():
    assert [one.name for one in dataclasses.fields(fresh())] == ["a", "b"]
    assert dataclasses.is_dataclass(fresh())


def test_an_instance_that_was_made_without_its_constructor():
    for use in (repr, hash, lambda one: one == one, copy.copy):
        kind = fresh()
        one = kind.__new__(kind)
        vars(one).update(a=1, b="b")
        use(one)
        assert one == kind(1) and hash(one) == hash(kind(1))
    assert pickle.loads(pickle.dumps(Point(3, 4))) == Point(3, 4)


def test_records_that_change_have_no_hash():
    with pytest.raises(TypeError, match="unhashable"):
        hash(fresh(frozen=False)(1))


def test_derived_classes():
    assert Derived("d", more=2) == Derived("d", [], 2)
    assert Derived("d").points is not Derived("d").points

    class Plain(fresh()):
        pass

    assert Plain(1).b == "b"


def test_patterns():
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)
        case _:
            pytest.fail("expected a match")
