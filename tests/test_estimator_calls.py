"""Odd data and odd parameters, for every estimator: a model whose predictions are finite, or one line that names why not.

Calls that once failed are in tests/cases/calls and are replayed; calling.py draws new ones.
"""

import json

import pytest

import calling
from soak import FACTOR, tell

CASES = sorted((calling.CASES / "calls").glob("*.json"))
SUITE, SOAK = 40, 2000


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a folder for checkpoints may be any text
    return tmp_path


def test_calls_work_or_are_refused(folder):
    """Plain estimators here; 2,000 calls in a soak, searches too. The smallest of those that fail are kept in tests/cases."""
    calls = calling.Calls(folder, searches=FACTOR > 1)
    outcomes = []
    for outcome in calls.outcomes(SUITE if FACTOR == 1 else SOAK * FACTOR // 80):
        outcomes.append(outcome)
        if outcome.result == "failed":
            calling.keep(outcome)
    found = calling.report(outcomes)
    tell("estimator calls", **found)
    assert found["failures"] == []
    assert all(sum(one.result == result for one in outcomes) > len(outcomes) // 10 for result in ("works", "refused"))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_calls_that_once_failed(case, folder):
    result, words = calling.Calls(folder).outcome(json.loads(case.read_text()))
    assert result != "failed", words
