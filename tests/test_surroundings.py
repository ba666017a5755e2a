"""Odd surroundings of a process: the right status, at most one line of error, no traceback; `make soak` combines 300 of them."""

import random

import jax
import pytest

import meristem
from meristem.nn import Network
from soak import FACTOR, tell
from surroundings import COMMANDS, ask, draw, wrong

SOAK = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("surroundings")
    meristem.save(place / "model.safetensors", Network.create("tunnel", 2, 1, width=3, depth=1, key=jax.random.key(0)))
    return place


@pytest.mark.parametrize(
    ("pieces", "command"),
    [
        (["no HOME", "no TMPDIR", "C locale", "no asserts", "a folder that is gone"], "show"),
        (["no streams", "a platform that is not there"], "show nothing"),
    ],
)
def test_a_command_in_odd_surroundings(pieces, command, folder):
    assert wrong(pieces, command, ask(pieces, command, folder)) is None


@pytest.mark.skipif(FACTOR == 1, reason="for make soak")
def test_combinations_of_odd_surroundings(folder):
    chance, failures = random.Random(0), []
    for _ in range(count := SOAK * FACTOR // 80):
        pieces, command = draw(chance), chance.choice([*COMMANDS])
        if (words := wrong(pieces, command, ask(pieces, command, folder))) is not None:
            failures.append([pieces, command, words])
    tell("surroundings", processes=count, failures=failures)
    assert failures == []
