"""Odd surroundings of a process: the right status, at most one line of error, no traceback; 300 of them in a soak."""

import random

import jax
import pytest

import meristem
from meristem.nn import Network
from soak import FACTOR, parts, tell
from surroundings import COMMANDS, ask, draw, wrong

SOAK, PARTS = 300, parts(6)


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
        (["a folder that is gone", "a cache of nonsense", "no GPU"], "reproduce"),
    ],
)
def test_a_command_in_odd_surroundings(pieces, command, folder):
    assert wrong(pieces, command, ask(pieces, command, folder)) is None


@pytest.mark.skipif(FACTOR == 1, reason="for make soak")
@pytest.mark.parametrize("part", PARTS)
def test_combinations_of_odd_surroundings(part, folder):
    chance, failures = random.Random(part), []
    for _ in range(count := SOAK * FACTOR // 80 // len(PARTS)):
        pieces, command = draw(chance), chance.choice([*COMMANDS])
        if (words := wrong(pieces, command, ask(pieces, command, folder))) is not None:
            failures.append([pieces, command, words])
    tell(f"surroundings {part}", processes=count, failures=failures)
    assert failures == []
