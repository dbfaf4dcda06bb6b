"""Records are dataclasses, before and after their methods are generated."""

import copy
import dataclasses
import pickle

import pytest

from pysmpi.python.records import record


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


def test_later_instances_are_like_the_first():
    frozen, ordinary = fresh(), fresh(frozen=False)
    for i in range(40):
        assert vars(frozen(i)) == {"a": i, "b": "b"} and frozen(i, "c") == frozen(b="c", a=i)
        with pytest.raises(dataclasses.FrozenInstanceError):
            frozen(i).a = 2
        with pytest.raises(dataclasses.FrozenInstanceError):
            del frozen(i).a
        changed = ordinary(i)
        changed.a = -i
        assert changed == ordinary(-i) and repr(changed).endswith(f"Fresh(a={-i}, b='b')")


def listed():
    """A record with a list, a field that is no argument, and a step after its construction."""

    @record
    class Listed:
        name: str
        items: list = dataclasses.field(default_factory=list)
        length: int = dataclasses.field(init=False)
        used: int = dataclasses.field(default=0, init=False)

        def __post_init__(self):
            self.length = len(self.items)

    return Listed


def test_fields_of_all_sorts():
    kind = listed()
    made = [kind("a", [1] * i) if i % 2 else kind(items=[2] * i, name="b") for i in range(40)]
    for i, one in enumerate(made):
        assert (one.length, one.used, len(one.items)) == (i, 0, i)
    assert all(kind("c").items is not kind("c").items for _ in range(40))
    assert [one.name for one in dataclasses.fields(kind)] == ["name", "items", "length", "used"]
    assert dataclasses.replace(made[1], name="d").name == "d"


@pytest.mark.parametrize("before", [0, 3, 40])
@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "missing 1 required positional argument: 'name'"),
        (("a", [], 1), {}, "takes from 2 to 3 positional arguments but 4 were given"),
        (("a",), {"name": "b"}, "multiple values for argument 'name'"),
        (("a",), {"length": 1}, "unexpected keyword argument 'length'"),
        (("a",), {"size": 1}, "unexpected keyword argument 'size'"),
    ],
)
def test_wrong_arguments(before, args, kwargs, message):
    kind = listed()
    for _ in range(before):
        kind("a")
    for _ in range(2):
        with pytest.raises(TypeError, match=message):
            kind(*args, **kwargs)
    assert kind("a").items == []


def test_objects_of_a_class_derived_from_a_frozen_record():
    class Derived(fresh()):
        pass

    for i in range(20):
        one = Derived(i)
        one.more = 1
        del one.more
        for name in "ab":
            with pytest.raises(dataclasses.FrozenInstanceError, match=f"assign to field '{name}'"):
                setattr(one, name, 2)
            with pytest.raises(dataclasses.FrozenInstanceError, match=f"delete field '{name}'"):
                delattr(one, name)
        assert vars(one) == {"a": i, "b": "b"}


def test_a_constructor_that_was_taken_before_stays_valid():
    kind = fresh()
    construct = kind.__init__
    for i in range(20):
        one = kind.__new__(kind)
        construct(one, i)
        assert one == kind(i)


def test_a_dataclass_derived_from_a_frozen_record_is_frozen():
    @dataclasses.dataclass(frozen=True)
    class More(fresh()):
        c: int = 0

    assert dataclasses.astuple(More(1, "2", 3)) == (1, "2", 3)
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):

        @dataclasses.dataclass
        class Changing(fresh()):
            pass


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
