"""Columns on the training part's scale: against the formula in float64, and the columns that are left alone."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from meristem.data import parts as module
from meristem.data.parts import Part, Parts, standardized


def three(*xs: np.ndarray) -> Parts:
    return Parts(*(Part(x, np.arange(len(x))) for x in xs))


@pytest.fixture
def drawn() -> list[np.ndarray]:
    """Parts of several blocks of rows, with columns far from 0 and of very different spread."""
    random = np.random.default_rng(0)
    scale, shift = 10.0 ** np.arange(-3, 3), np.array([0, 1e4, -1e3, 5, 0.1, -7])
    return [(random.standard_normal((n, 6)) * scale + shift).astype(np.float32) for n in (2 * module.ROWS + 3, 100, 7)]


def test_every_part_is_scaled_by_the_training_part(drawn):
    mean, sd = drawn[0].astype(np.float64).mean(0), drawn[0].astype(np.float64).std(0)
    outcome = standardized(three(*drawn))
    for part, x in zip(outcome, drawn, strict=True):
        assert part.x.dtype == np.float32
        np.testing.assert_allclose(part.x, (x - mean) / sd, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(part.y, np.arange(len(x)))


def test_what_comes_in_is_not_changed(drawn):
    before = [x.copy() for x in drawn]
    standardized(three(*drawn))
    for x, was in zip(drawn, before, strict=True):
        np.testing.assert_array_equal(x, was)


def test_a_constant_column_becomes_zero_in_every_part():
    # 0.1 is no float32: a mean that is summed up differs from it, and over an sd of rounding errors it would be about 1.
    train = np.stack([np.full(3000, 0.1), np.arange(3000.0), np.ones(3000)], 1).astype(np.float32)
    other = np.array([[5.0, 0.0, 0.0]], np.float32)
    outcome = standardized(three(train, other, other))
    for part in outcome:
        assert (part.x[:, [0, 2]] == 0).all()
    assert outcome.dev.x[0, 1] < -1.7


def test_zeros_and_ones_among_other_columns_stay():
    rare = np.zeros(1000)
    rare[3] = 1
    outcome = standardized(three(*(np.stack([rare, np.arange(1000.0)], 1) for _ in range(3))))
    np.testing.assert_array_equal(outcome.train.x[:, 0], rare.astype(np.float32))


@pytest.mark.parametrize("columns", [[0], [0, 1]])
def test_zeros_and_ones_are_scaled_like_the_others_when_all_are_asked_for(columns):
    """Alone and among numbers; a quarter of ones has mean 1/4 and variance 3/16."""
    x = np.stack([np.arange(1000) % 4 == 0, np.arange(1000.0)], 1)[:, columns]
    outcome = standardized(three(x, x, 1 - x[:1]), "all")
    ones, zeros = 0.75 / (3 / 16) ** 0.5, -0.25 / (3 / 16) ** 0.5
    np.testing.assert_allclose(outcome.train.x[:, 0], np.where(x[:, 0] == 1, ones, zeros), rtol=1e-6)
    np.testing.assert_allclose(outcome.test.x[0, 0], zeros, rtol=1e-6)
    assert {part.x.dtype for part in outcome} == {np.dtype(np.float32)}


def test_columns_that_are_unknown_get_a_clear_line(drawn):
    with pytest.raises(ValueError, match=r"columns='number' is not known.*Did you mean 'numbers'"):
        standardized(three(*drawn), "number")


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
def test_zeros_and_ones_alone_become_bytes_of_nothing_and_all(dtype):
    x = np.array([[0, 1, 0], [1, 1, 0]], dtype)
    outcome = standardized(three(x, x, 1 - x))
    assert {part.x.dtype for part in outcome} == {np.dtype(np.uint8)}
    # The second and third column are constant in the training part.
    np.testing.assert_array_equal(outcome.train.x, [[0, 0, 0], [255, 0, 0]])
    np.testing.assert_array_equal(outcome.test.x, [[255, 0, 0], [0, 0, 0]])


def test_bytes_only_when_every_part_allows_them():
    x = np.array([[0, 1], [1, 0]])
    outcome = standardized(three(x, x, 3 * x))
    assert {part.x.dtype for part in outcome} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(outcome.test.x, 3 * x)


@settings(deadline=None, max_examples=50)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 40),
    st.integers(1, 5),
    st.sampled_from([np.float32, np.float64, np.int16]),
    st.integers(1, 64),
)
def test_columns_have_mean_zero_and_sd_one_however_rows_are_blocked(seed, n, columns, dtype, rows):
    random = np.random.default_rng(seed)
    x = (random.integers(-50, 50, (n, columns)) * random.choice([0, 1, 300])).astype(dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROWS", rows)
        outcome = standardized(three(x, x[:1], x[::-1])).train.x
    for column, was in zip(outcome.astype(np.float64).T, x.T, strict=True):
        if was.min() == was.max():
            assert (column == 0).all()
        elif not set(was) <= {0, 1}:
            np.testing.assert_allclose([column.mean(), column.std()], [0, 1], atol=1e-6)
