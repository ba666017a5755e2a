"""Odd data and odd parameters, for every estimator: a model whose predictions are finite, or one line that names why not.

Calls that once failed are in tests/cases/calls and are replayed; calling.py draws new ones.
"""

import json

import pytest

import calling
from soak import FACTOR, parts, tell

CASES = sorted((calling.CASES / "calls").glob("*.json"))
SUITE, SOAK, PARTS = 16, 2000, parts(4)
NAMES = ["TunnelClassifier", "HighwayRegressor"] if FACTOR == 1 else [*calling.PLAIN, *calling.SEARCHES]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a folder for checkpoints may be any text
    return tmp_path


@pytest.mark.parametrize("part", PARTS)
def test_calls_work_or_are_refused(part, folder):
    """Of two estimators here; 2,000 calls of all in a soak. The smallest of those that fail are kept in tests/cases."""
    calls, outcomes = calling.Calls(folder, seed=part, names=NAMES), []
    for outcome in calls.outcomes(SUITE if FACTOR == 1 else SOAK * FACTOR // 80 // len(PARTS)):
        outcomes.append(outcome)
        if outcome.result == "failed":
            calling.keep(outcome)
    found = calling.report(outcomes)
    tell(f"estimator calls {part}", **found)
    assert found["failures"] == []
    assert all(sum(one.result == result for one in outcomes) > len(outcomes) // 10 for result in ("works", "refused"))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_calls_that_once_failed(case, folder):
    result, words = calling.Calls(folder).outcome(json.loads(case.read_text()))
    assert result != "failed", words
