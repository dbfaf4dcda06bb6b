"""The text of a record is that of Python's own encoder of JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysmpi.trace.json_text import json_text

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda some: (
        st.lists(some)
        | st.lists(some).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.booleans() | st.none(), some)
    ),
    max_leaves=20,
)


@given(values)
def test_it_is_the_same_text(value):
    assert json_text(value) == json.dumps(value, separators=(",", ":"))


def test_numbers_of_numpy():
    assert json_text([np.float64(0.1), float("inf"), -0.0]) == "[0.1,Infinity,-0.0]"
    with pytest.raises(TypeError):
        json_text(["send", np.int64(3)])
