"""Checks and normalisation, to the bit."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from omnigraph.embedding.vectors import BadVector, checked, norms

SMALLEST = 2.0**-23


def f32(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def slow_norm(values):
    total = 0.0
    for value in map(f32, values):
        total += value * value
    return f32(math.sqrt(total))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80))
def test_vectorised_and_reference_results_agree(values):
    norm = slow_norm(values)
    assume(norm > SMALLEST)
    assert norms(np.array([values], np.float32))[0] == norm
    assert checked([values], len(values))[0].tolist() == [f32(f32(value) / norm) for value in values]


def test_the_norm_is_summed_in_order():
    # Pairwise summation, which numpy prefers, keeps some of the small ones.
    values = [2.0**30, *[1.0] * 1_000, 2.0**-2]
    assert norms(np.array([values], np.float32))[0] == slow_norm(values)
    many = np.random.default_rng(1).normal(size=(7, 1_537)).astype(np.float32)
    assert norms(many).tolist() == [slow_norm(row) for row in many.tolist()]


def test_a_vector_gets_length_one():
    assert checked([[3, 4]], 2).tolist() == [[f32(0.6), f32(0.8)]]
    assert checked([[3.0, 4.0]], 2).dtype == np.float32


@pytest.mark.parametrize(("values", "received"), [([], 0), ([1.0], 1), ([1.0, 2.0, 3.0], 3)])
def test_a_wrong_dimension_reports_both_numbers(values, received):
    with pytest.raises(BadVector, match=f"expected a vector of 2 numbers, received {received}") as caught:
        checked([[1.0, 0.0], values], 2)
    assert caught.value.row == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e39])
def test_a_non_finite_component_reports_its_index(bad):
    with pytest.raises(BadVector, match="component 2 "):
        checked([[1.0, 2.0, bad, bad]], 4)


@pytest.mark.parametrize("values", [[0.0, 0.0], [0.0, -0.0], [SMALLEST, 0.0], [1e-46, 1e-46]])
def test_a_zero_vector_has_no_direction(values):
    with pytest.raises(BadVector, match="no direction"):
        checked([values], 2)


def test_a_barely_long_enough_vector_is_accepted():
    longer = float(np.nextafter(np.float32(SMALLEST), np.float32(1)))
    assert checked([[longer, 0.0]], 2).tolist() == [[1.0, 0.0]]


def test_a_length_beyond_32_bits_is_refused():
    with pytest.raises(BadVector, match="too long"):
        checked([[3e38, 3e38]], 2)


def test_dimension_is_checked_before_finiteness_and_finiteness_before_zero():
    with pytest.raises(BadVector, match="received 1"):
        checked([[math.nan]], 2)
    with pytest.raises(BadVector, match="component 0"):
        checked([[math.nan, 0.0]], 2)
