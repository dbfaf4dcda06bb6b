"""Lumping, the steady state and bisimulation, against results by other means."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysmpi.coherence.interleaved import interleaved
from pysmpi.errors import UsageError
from pysmpi.memory.coherence import protocol
from pysmpi.memory.primitives import program, steady
from pysmpi.memory.primitives.bisimulation import TAU, branching_classes, equivalent
from pysmpi.memory.primitives.chain import NO_LABEL, Chain, generate
from pysmpi.memory.primitives.functional import model
from pysmpi.memory.primitives.lumping import lump
from pysmpi.memory.primitives.machine import PrimitiveMachine
from pysmpi.memory.primitives.placement import at_distance, latencies
from pysmpi.memory.primitives.steady import steady_state, throughputs

pytestmark = pytest.mark.slow  # scipy solves the chains

LABELS = 3


def chain_of(states, edges):
    source, target, rate, label = (np.array(column) for column in zip(*edges))
    return Chain(states, source, target, rate.astype(float), label)


@st.composite
def chains(draw):
    """Chains in which every state is in a cycle through all of them, and more."""
    states = draw(st.integers(2, 6))
    rates = st.sampled_from([1.0, 2.0, 0.5, 1e6])
    labels = st.integers(NO_LABEL, LABELS - 1)
    edges = [(i, (i + 1) % states, draw(rates), draw(labels)) for i in range(states)]
    some = st.tuples(st.integers(0, states - 1), st.integers(0, states - 1), rates, labels)
    return chain_of(states, edges + draw(st.lists(some, max_size=10)))


def generator(chain):
    matrix = np.zeros((chain.states, chain.states))
    np.add.at(matrix, (chain.source, chain.target), chain.rate)
    return matrix - np.diag(matrix.sum(axis=1))


def copies(chain, times):
    """Each state `times` times, its transitions to the copies of its targets in turn."""
    edges = []
    for i in range(chain.transitions):
        for copy in range(times):
            source = int(chain.source[i]) * times + copy
            target = int(chain.target[i]) * times + (copy + i) % times
            edges.append((source, target, chain.rate[i], chain.label[i]))
    return chain_of(chain.states * times, edges)


@given(chains())
@settings(deadline=None)
def test_the_long_run_solves_the_equations(chain):
    probability = steady_state(chain)
    assert probability.sum() == pytest.approx(1)
    assert (probability > -1e-12).all()
    flows = np.abs(probability[:, None] * generator(chain))
    assert np.abs(probability @ generator(chain)).max() <= 1e-9 * flows.max()


@given(chains())
@settings(deadline=None)
def test_lumping_keeps_every_throughput(chain):
    small, classes = lump(chain)
    assert small.states == classes.max() + 1 and classes[0] == 0
    expected = throughputs(chain, steady_state(chain), LABELS)
    assert throughputs(small, steady_state(small), LABELS) == pytest.approx(expected, rel=1e-6)


@given(chains(), st.integers(2, 3))
@settings(deadline=None)
def test_lumping_undoes_copies(chain, times):
    small, classes = lump(copies(chain, times))
    again, _ = lump(small)
    assert small.states == lump(chain)[0].states == again.states
    for state in range(chain.states):
        assert len(set(classes[state * times : (state + 1) * times])) == 1


def test_labels_keep_states_apart():
    edges = [(0, 1, 1.0, 0), (1, 0, 1.0, 1)]
    assert lump(chain_of(2, edges))[0].states == 2
    assert lump(chain_of(2, edges), np.array([0, 0]))[0].states == 1


def test_the_beginning_counts_for_nothing():
    chain = chain_of(3, [(0, 1, 1.0, 0), (1, 2, 1.0, 1), (2, 1, 3.0, 2)])
    assert steady_state(chain) == pytest.approx([0, 0.75, 0.25])


def test_two_ends_have_no_long_run():
    chain = chain_of(3, [(0, 1, 1.0, 0), (0, 2, 1.0, 0), (1, 1, 1.0, 0), (2, 2, 1.0, 0)])
    with pytest.raises(UsageError, match="can end in 2 different places"):
        steady_state(chain)


def machine(name, transfers=True):
    return PrimitiveMachine(
        program(name), protocol("FAME-B"), at_distance(2, 1), latencies("fame"), transfers
    )


def test_iteration_gives_what_factorisation_gives(monkeypatch):
    chain = generate(machine("sr2", transfers=False))
    exact = steady_state(chain)
    monkeypatch.setattr(steady, "FACTORED", 100)
    assert steady_state(chain) == pytest.approx(exact, rel=1e-6, abs=1e-12)


def test_scipy_is_asked_for(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "scipy", None)
    with pytest.raises(UsageError, match=r"pip install 'pysmpi\[memory\]'"):
        many = steady.DENSE + 1
        steady_state(chain_of(many, [(i, (i + 1) % many, 1.0, 0) for i in range(many)]))
    # Small chains need numpy alone.
    assert steady_state(chain_of(1, [(0, 0, 1.0, 0)])) == [1.0]


@pytest.mark.parametrize("name", ["sr1", "sr2", "barrier-central"])
def test_dense_and_sparse_solutions_agree(name, monkeypatch):
    chain = generate(machine(name))
    dense = steady_state(chain)
    monkeypatch.setattr(steady, "DENSE", 0)
    assert dense == pytest.approx(steady_state(chain), rel=1e-9, abs=1e-12)


def test_components_of_random_chains():
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    random = np.random.default_rng(3)
    for size in (2, 5, 30, 200):
        pairs = random.integers(0, size, (size + size // 3, 2))
        chain = chain_of(size, [(int(a), int(b), 1.0, 0) for a, b in pairs])
        flow = coo_matrix((chain.rate, (chain.source, chain.target)), shape=(size, size))
        count, expected = connected_components(flow, connection="strong")
        found, component = steady.strong_components(chain)
        assert found == count
        assert len(set(zip(component.tolist(), expected.tolist()))) == count


@pytest.mark.parametrize("name", ["sr1", "sr2", "barrier-central"])
def test_beginnings_and_ends_add_states(name):
    made = machine(name)
    chain = generate(made)
    states, transitions = interleaved(made)
    # Both processes can always go on: two transitions a state in each system.
    assert transitions == 2 * states and chain.transitions == 2 * chain.states
    assert chain.states < states < 12 * chain.states


def test_hidden_steps_are_nothing():
    one = [[("a", 1)], [("b", 0)]]
    other = [[(TAU, 1)], [("a", 2)], [(TAU, 3)], [(TAU, 2), ("b", 0)]]
    assert equivalent(one, other) == (True, 2)


def test_a_hidden_choice_is_something():
    # a.(b + c) against a.b + a.c, and against a.(b + tau.c): not the same.
    whole = [[("a", 1)], [("b", 0), ("c", 0)]]
    early = [[("a", 1), ("a", 2)], [("b", 0)], [("c", 0)]]
    hidden = [[("a", 1)], [("b", 0), (TAU, 2)], [("c", 0)]]
    assert not equivalent(whole, early)[0]
    assert not equivalent(whole, hidden)[0]
    assert equivalent(hidden, hidden)[0]


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from([TAU, "a", "b"]), st.integers(0, 4)), max_size=3),
        min_size=5,
        max_size=5,
    )
)
@settings(deadline=None)
def test_classes_are_a_branching_bisimulation(transitions):
    """Each step of a state can be answered by every state of its class, by definition."""
    classes = branching_classes(transitions)

    def within(state):
        """The states that hidden steps lead to through the class of `state`."""
        found, stack = {state}, [state]
        while stack:
            for label, target in transitions[stack.pop()]:
                if label == TAU and classes[target] == classes[state] and target not in found:
                    found.add(target)
                    stack.append(target)
        return found

    for one, leaving in enumerate(transitions):
        for other in range(len(transitions)):
            if classes[one] != classes[other]:
                continue
            for label, target in leaving:
                if label == TAU and classes[target] == classes[one]:
                    continue
                assert any(
                    label == answer and classes[target] == classes[reached]
                    for via in within(other)
                    for answer, reached in transitions[via]
                )


def test_a_state_of_the_interleaved_system_takes_little_memory():
    """So that the paper's 1,452,856 states, and more, take a fraction of a gigabyte."""
    import tracemalloc

    wide = program("barrier-dissemination", {"processes": "3"})
    places = at_distance(3, 1, 3)
    machine = PrimitiveMachine(wide, protocol("FAME-A"), places, latencies("fame"), False, None)
    model(machine)
    machine.merge()
    model(machine)
    states = 50_000
    tracemalloc.start()
    with pytest.raises(UsageError, match="expected at most 50,000 states"):
        interleaved(machine, states)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 180 * states
