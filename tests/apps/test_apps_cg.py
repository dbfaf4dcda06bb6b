"""The parts of NAS CG: NPB's random numbers, its matrix and its layout of the ranks."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

RELAXED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture
def cg(load):
    return load("npb_cg")


def naive_states(count):
    """NPB's generator, one number at a time."""
    state, states = 314159265, []
    for _ in range(count):
        state = state * 5**13 % 2**46
        states.append(state)
    return states


def naive_bounds(positions, count, width):
    """Draw vector after vector until each has `width` different positions."""
    bounds, place = [0], 0
    for _ in range(count):
        seen = set()
        while len(seen) < width:
            seen.add(positions[place])
            place += 1
        bounds.append(place)
    return bounds


def naive_matrix(cg, problem):
    """The whole matrix by the definition: one random vector after the other, densely."""
    order, states = problem.order, iter(naive_states(40 * problem.order * problem.nonzeros))
    power = 1
    while power < order:
        power *= 2
    next(states)
    ratio, size = cg.CONDITION ** (1.0 / order), 1.0
    matrix = np.zeros((order, order))
    for row in range(order):
        vector = {}
        while len(vector) < problem.nonzeros:
            value, place = next(states) / 2**46, int(power * (next(states) / 2**46))
            if place < order:
                vector.setdefault(place, value)
        vector[row] = 0.5
        places, values = np.array(list(vector)), np.array(list(vector.values()))
        matrix[np.ix_(places, places)] += np.outer(values, size * values)
        size *= ratio
    return matrix + (cg.CONDITION - problem.shift) * np.eye(order)


def dense(block, rows, columns):
    """The elements that a block holds, as a dense matrix."""
    matrix = np.zeros((len(rows), len(columns)))
    for span, places, values, starts in block.parts:
        ends = [*starts[1:], len(values)]
        for row, start, end in zip(range(span.start, span.stop), starts, ends, strict=True):
            matrix[row, places[start:end]] += values[start:end]
    return matrix


class Ranks:
    """A communicator of which only rank and size are known."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return self.size


@pytest.mark.parametrize("count", [1, 2, 3, 100, 1000])
def test_random_states(cg, count):
    assert cg.random_states(count).tolist() == naive_states(count)


@RELAXED
@given(
    width=st.integers(1, 6),
    vectors=st.integers(1, 40),
    seed=st.integers(0, 2**32),
    spread=st.integers(1, 60),
)
def test_vector_bounds(cg, width, vectors, seed, spread):
    # Few different positions make many vectors draw one twice.
    drawn = np.random.default_rng(seed).integers(0, width + spread, 4000 + 200 * width * vectors)
    bounds = cg.vector_bounds(drawn, vectors, width)
    assert bounds.tolist() == naive_bounds(drawn.tolist(), vectors, width)


@RELAXED
@given(order=st.integers(9, 60), nonzeros=st.integers(1, 7), log_size=st.integers(0, 4))
def test_blocks_make_up_the_matrix(cg, order, nonzeros, log_size):
    problem = cg.Problem("T", order, nonzeros, 1, 3.0, 1.0)
    whole = naive_matrix(cg, problem)
    size = 2**log_size
    for rank in range(size):
        grid = cg.Grid(Ranks(rank, size), order)
        block = cg.Block(problem, grid.rows, grid.columns)
        expected = whole[grid.rows.start : grid.rows.stop, grid.columns.start : grid.columns.stop]
        # Terms around 1 may nearly cancel.
        found = dense(block, grid.rows, grid.columns)
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)
        vector, product = np.arange(1.0, len(grid.columns) + 1), np.empty(len(grid.rows))
        block.times(vector, product)
        np.testing.assert_allclose(product, expected @ vector, rtol=1e-11, atol=1e-11)


def test_small_parts_make_the_same_product(cg, monkeypatch):
    problem = cg.Problem("T", 200, 4, 1, 3.0, 1.0)
    whole, vector = range(200), np.arange(200.0)
    products = []
    for at_once in (1, 50, 1 << 16):
        monkeypatch.setattr(cg, "NONZEROS_AT_ONCE", at_once)
        block, product = cg.Block(problem, whole, whole), np.empty(200)
        block.times(vector, product)
        products.append(product)
    assert len(block.parts) == 1
    np.testing.assert_array_equal(products[0], products[2])
    np.testing.assert_array_equal(products[1], products[2])


@pytest.mark.parametrize("name, nonzeros", [("S", 78148), ("W", 508402), ("A", 1853104)])
def test_number_of_elements_is_npbs(cg, name, nonzeros):
    problem = cg.CLASSES[name]
    whole = range(problem.order)
    block = cg.Block(problem, whole, whole)
    assert sum(len(values) for _, _, values, _ in block.parts) == nonzeros


@RELAXED
@given(order=st.integers(64, 3000), log_size=st.integers(0, 8))
def test_layout(cg, order, log_size):
    size = 2**log_size
    grids = [cg.Grid(Ranks(rank, size), order) for rank in range(size)]
    covered = np.zeros((order, order), int) if order < 200 else None
    area = 0
    for rank, grid in enumerate(grids):
        area += len(grid.rows) * len(grid.columns)
        if covered is not None:
            covered[grid.rows.start : grid.rows.stop, grid.columns.start : grid.columns.stop] += 1
        # A rank gives its transposed partner the data that this one needs, and back again.
        other = grids[grid.transposed]
        assert other.transposed == rank
        given = grid.rows[grid.share]
        assert given == other.columns
        # A partner gives as much as is expected, and has this rank as its partner.
        for step, partner, part in grid.halves:
            mate = next(entry for entry in grids[partner].halves if entry[0] == step)
            assert mate[1] == rank
            assert grid.rows[part] == grids[partner].rows[grids[partner].share]
        if grid.halves:
            assert len(grid.received[grid.share]) == len(given)
    assert area == order * order
    assert covered is None or (covered == 1).all()


def test_fortran_numbers(cg):
    assert cg.fortran(17.130235054029).strip() == "0.171302350540E+02"
    assert cg.fortran(1e-15).strip() == "0.100000000000E-14"
    assert cg.fortran(0.0).strip() == "0.000000000000E+00"


def test_verdicts(cg, capsys):
    problem = cg.CLASSES["S"]
    assert cg.verify(problem, 15, problem.zeta * (1 + 1e-11))
    assert not cg.verify(problem, 15, problem.zeta * (1 + 1e-9))
    assert cg.verify(problem, 3, 1.0)
    verdicts = [line for line in capsys.readouterr().out.splitlines() if "VERIFICATION" in line]
    assert verdicts[:2] == [" VERIFICATION SUCCESSFUL", " VERIFICATION FAILED"]
    assert "NO VERIFICATION" in verdicts[2]
