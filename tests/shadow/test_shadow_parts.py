"""Sampling: the stopping rule, calls that are alike, outputs of calls, targets."""

from __future__ import annotations

import ast
import math
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysmpi.errors import UsageError
from pysmpi.shadow import source
from pysmpi.shadow.estimate import FEWEST, Estimate, StoppingRule
from pysmpi.shadow.keys import key_function
from pysmpi.shadow.once import SharedResult
from pysmpi.shadow.outputs import ArrayWatch, Outputs
from pysmpi.shadow.passes import Entry
from pysmpi.shadow.targets import parse_once, parse_sample

times = st.floats(1.0, 1e9)


def measured(values: list[float], rule: StoppingRule) -> Estimate:
    estimate = Estimate()
    for value in values:
        estimate.add(value, rule)
    return estimate


@settings(deadline=None)
@given(st.lists(times, min_size=2, max_size=60))
def test_mean_and_error_are_those_of_the_measures(values):
    estimate = measured(values, StoppingRule(warmup=0))
    assert math.isclose(estimate.mean, np.mean(values), rel_tol=1e-9)
    expected = np.std(values, ddof=1) / math.sqrt(len(values)) / np.mean(values)
    assert math.isclose(estimate.error, expected, rel_tol=1e-6, abs_tol=1e-7)


@settings(deadline=None)
@given(st.lists(times, min_size=1, max_size=30), st.integers(0, 5))
def test_warm_up_does_not_count(values, warmup):
    estimate = measured(values, StoppingRule(warmup=warmup))
    assert estimate.count == max(0, len(values) - warmup)
    if estimate.count:
        assert math.isclose(estimate.mean, np.mean(values[warmup:]), rel_tol=1e-9)


@settings(deadline=None)
@given(
    st.lists(times, min_size=40, max_size=40),
    st.one_of(st.none(), st.integers(1, 30)),
    st.one_of(st.none(), st.floats(1e-3, 0.9)),
)
def test_measuring_stops_by_count_or_precision_and_not_before(values, iters, precision):
    if iters is None and precision is None:
        return
    rule = StoppingRule(iters, precision, warmup=0)
    estimate = Estimate()
    for value in values:
        estimate.add(value, rule)
        by_count = iters is not None and estimate.count >= iters
        by_error = (
            precision is not None and estimate.count >= FEWEST and estimate.error <= precision
        )
        assert estimate.enough(rule) == (by_count or by_error)
        if estimate.enough(rule):
            break
    if iters is not None:
        assert estimate.count <= iters


@settings(deadline=None)
@given(st.integers(0, 2**32), st.floats(0.01, 0.3))
def test_the_error_says_how_far_the_mean_is_from_the_truth(seed, spread):
    rule = StoppingRule(None, 0.02, warmup=0)
    random = Random(seed)
    estimate = Estimate()
    while not estimate.enough(rule):
        estimate.add(random.gauss(1000.0, 1000.0 * spread), rule)
    # A rule that stops as soon as the error looks small stops too early now and then, but not by
    # much.
    assert abs(estimate.mean - 1000.0) < 1000.0 * max(8 * 0.02, 4 * spread)


def test_the_median_is_of_the_measures():
    estimate = measured([50.0, 1.0, 9.0, 3.0], StoppingRule(warmup=1))
    assert estimate.median == 3.0
    estimate.add(5.0, StoppingRule())
    assert estimate.median == 4.0


@given(
    st.lists(st.tuples(st.integers(1, 5), st.sampled_from([2.0, 3.0, 7.0])), min_size=1),
)
def test_what_was_charged_too_little_comes_along(steps):
    entry = Entry()
    charged = skipped = 0.0
    for passes, value in steps:
        cost = entry.cost(passes, value)
        assert cost >= 0.0
        charged += cost
        skipped += passes
        # An excess stays charged only while there is no later charge to reduce.
        assert charged >= skipped * value and (cost == 0.0 or charged == skipped * value)


def test_draws_are_measures_and_repeat():
    estimate = measured([5.0, 1.0, 2.0, 3.0], StoppingRule(warmup=1))
    draws = [estimate.draw(Random(3)) for _ in range(2)]
    assert draws[0] == draws[1]
    random = Random(0)
    assert {estimate.draw(random) for _ in range(100)} == {1.0, 2.0, 3.0}


@pytest.mark.parametrize(
    "parameters",
    [{"iters": 0}, {"precision": 0.0}, {"warmup": -1}, {"iters": None, "precision": None}],
)
def test_rules_that_make_no_sense(parameters):
    with pytest.raises(ValueError):
        StoppingRule(**parameters)


def test_calls_are_told_apart_by_the_shapes_of_their_arguments():
    key = key_function("shape")
    a, b = np.zeros((3, 4)), np.ones((3, 4))
    assert key((a, 1.5), {}) == key((b, 2.5), {})
    assert key((a,), {}) != key((a.T,), {})
    assert key((a,), {}) != key((a.astype(np.float32),), {})
    assert key((a,), {}) != key((a[:2],), {})
    assert key((3,), {}) != key((4,), {})
    assert key((), {"n": 3, "m": a}) == key((), {"m": b, "n": 3})
    assert key(([a, 3],), {}) == key(([b, 3],), {})
    assert key((range(5),), {}) == key((range(1, 6),), {})
    assert key((slice(3),), {}) != key((slice(4),), {})
    assert key((object(),), {}) == key((object(),), {})
    hash(key((a, [1, {2: 3}], slice(1), "x", None, np.int64(2), {1}), {"k": (a,)}))


def test_calls_can_be_told_apart_by_less():
    assert key_function("type")((3, "a"), {}) == key_function("type")((4, "b"), {})
    assert key_function("type")((np.zeros(3),), {}) != key_function("type")((np.zeros(4),), {})
    assert key_function("none")((3,), {}) == key_function("none")((np.zeros(4),), {})


class Thing:
    def __init__(self, size: int = 3) -> None:
        self.field = np.zeros(size)
        self.fixed = np.zeros(size)


def test_arrays_that_a_call_writes_to_are_found_and_written_again():
    thing, out, given_ = Thing(), np.zeros((4, 4)).T, np.ones(2)
    watch = ArrayWatch((thing, given_), {"out": out})
    thing.field += 1.0
    out[1] = 7.0
    written = watch.written()
    assert sorted(map(str, written)) == ["('field',)", "out"]
    outputs = Outputs(out, (thing, given_), {"out": out}, written)
    out[:] = -1.0  # the later work of the program
    again, target = Thing(), np.zeros((4, 4)).T
    result = outputs.leave((again, np.full(2, 5.0)), {"out": target})
    assert result is target
    assert target[1].tolist() == [7.0] * 4 and target[0].tolist() == [0.0] * 4
    assert again.field.tolist() == [1.0] * 3


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(3, "M8[s]"),
        np.zeros((2, 3, 4)).transpose(1, 0, 2),
        np.zeros((4, 6), np.complex64)[::2, 1::2],
        np.ma.zeros(3),
        np.array(0.0),
        np.zeros(3, [("a", "i4"), ("b", "f8")]),
        np.zeros(3, np.float16),
        np.zeros(3, bool),
    ],
)
def test_a_change_is_found_in_any_array(array):
    watch = ArrayWatch((array, np.empty(0), np.array(["x", None])), {})
    assert watch.written() == []
    array[...] = np.ones((), array.dtype) if array.dtype.names else 1
    assert watch.written() == [0]


def test_results_are_copies_of_arrays():
    first = np.arange(3.0)
    outputs = Outputs((first, [first, "x"]), (), {}, [])
    first[:] = 9.0
    one, two = outputs.leave((), {}), outputs.leave((), {})
    one[0][:] = -1.0
    assert two[0].tolist() == [0.0, 1.0, 2.0] and two[1][0].tolist() == [0.0, 1.0, 2.0]


def test_outputs_grow_with_what_is_read():
    a, out, index = np.full(4, 2.0), np.full(3, 5.0), np.arange(3)
    outputs = Outputs((np.ones(2), index), (a, out), {}, [1], scaled=True)
    target = np.zeros(3)
    values, positions = outputs.leave((np.full(4, 6.0), target), {})
    assert target.tolist() == [15.0] * 3 and values.tolist() == [3.0, 3.0]
    assert positions.tolist() == [0, 1, 2]
    outputs.leave((np.zeros(4), target), {})
    assert target.tolist() == [0.0] * 3
    outputs.leave((np.full(4, np.inf), target), {})
    assert target.tolist() == [5.0] * 3


def test_a_constructor_leaves_its_object():
    made = Thing(5)
    outputs = Outputs(None, (made, 5), {}, [], constructor=True)
    new = Thing.__new__(Thing)
    assert outputs.leave((new, 5), {}) is None
    assert new.field is made.field


@pytest.mark.parametrize("writable", [False, True])
def test_shared_results_are_read_only_or_ones_own(writable):
    big = np.arange(20_000.0)
    shared = SharedResult({"big": big, "small": np.arange(3), "list": [1]}, writable)
    one, two = shared.take(), shared.take()
    assert shared.same({"big": big.copy(), "small": np.arange(3), "list": [1]})
    for other in (
        {"big": big + 1.0, "small": np.arange(3), "list": [1]},
        {"big": big, "small": np.arange(3) + 1, "list": [1]},
        {"big": big, "small": np.arange(3), "list": [2]},
        {"big": big, "small": np.arange(3)},
        {"big": big, "small": [0, 1, 2], "list": [1]},
    ):
        assert not shared.same(other), other
    one["list"].append(2)
    assert two["list"] == [1]
    assert one["big"].flags.writeable == writable
    if writable:
        one["big"][0] = one["small"][0] = 5.0
        assert two["big"][0] == 0.0 and two["small"][0] == 0
    else:
        assert np.shares_memory(one["big"], two["big"])
    shared.close()
    assert np.array_equal(two["big"], big)


def test_results_that_cannot_be_pickled_are_the_same_among_themselves():
    shared = SharedResult(lambda: 1, writable=False)
    assert shared.alone
    assert shared.same(lambda: 1)
    assert not shared.same([1])
    assert not SharedResult([1], writable=False).same(lambda: 1)


def test_targets():
    target = parse_sample("a.b:C.f:iters=5,by=type,scope=global,charge=draw,warmup=0")
    assert (target.module, target.path, target.name) == ("a.b", "C.f", "a.b:C.f")
    assert target.rule == StoppingRule(5, None, 0)
    assert (target.by, target.scope, target.charge) == ("type", "global", "draw")
    assert parse_sample("m:f").rule == StoppingRule()
    assert parse_sample("m:f:precision=2%").rule == StoppingRule(None, 0.02)
    assert parse_sample("m:f:scope=collective").rule == StoppingRule(FEWEST, None)
    assert parse_once("m:f:iters=2,writable=yes").writable


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("f", "MODULE:FUNCTION"),
        ("m:", "MODULE:FUNCTION"),
        ("m:f g", "MODULE:FUNCTION"),
        ("m:f:often", "'often'"),
        ("m:f:iters=0", "iters"),
        ("m:f:iters=x", "iters"),
        ("m:f:precision=2", "relative error"),
        ("m:f:scope=world", "local, global or collective"),
        ("m:f:scope=collective,precision=0.1", "iters"),
    ],
)
def test_wrong_targets(text, part):
    with pytest.raises(UsageError, match=part) as caught:
        parse_sample(text)
    assert str(caught.value).startswith(f"--sample {text}")


PROGRAM = """
from numpy import dot
class C:
    @staticmethod
    @other
    def s(): pass
    def m(self):
        def inner(): yield 1
        return inner
    def g(self): yield 1
if True:
    def f(): pass
async def a(): pass
class D: pass
"""


def test_functions_are_decorated_where_they_are_defined():
    tree = ast.parse(PROGRAM)
    source.replace(tree, "m", {"f": "m:f", "C.s": "m:C.s", "C.m": "m:C.m"}, "--sample")
    text = ast.unparse(tree)
    assert f"@staticmethod\n    @{source.HOOK}('m:C.s')\n    @other" in text
    assert f"    @{source.HOOK}('m:f')\n    def f" in text
    assert text.count(source.HOOK) == 3
    assert [path for path, _ in source.functions(ast.parse(PROGRAM))] == ["C.s", "C.m", "f"]


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("C.g", "generator"),
        ("a", "generator or coroutine"),
        ("D", "without __init__"),
        ("dot", "numpy:dot"),
        ("C.mm", "close to it are"),
        ("nothing", "no function nothing is defined"),
    ],
)
def test_functions_that_cannot_be_replaced(path, part):
    with pytest.raises(UsageError, match=part):
        source.replace(ast.parse(PROGRAM), "m", {path: f"m:{path}"}, "--sample")
