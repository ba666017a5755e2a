"""Compiled programs are kept from one process to the next: where, when not, how much, and what is done with broken entries."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from meristem import cache

FIT = """
import json, sys, time, warnings
import jax
seen = []
warnings.showwarning = lambda message, category, *rest: seen.append(str(message))
hits = []
jax.monitoring.register_event_listener(lambda name, **about: hits.append(name.rpartition("/")[2]))
import meristem
assert jax.config.jax_compilation_cache_dir is None  # importing changes nothing
from meristem import TunnelClassifier
from sklearn.datasets import load_iris
model = TunnelClassifier(width=4, depth=1, max_epochs=2, settle=False, random_state=0)
model.fit(*load_iris(return_X_y=True))
print(json.dumps({"folder": jax.config.jax_compilation_cache_dir, "hits": hits.count("cache_hits"),
    "misses": hits.count("cache_misses"), "warnings": [one for one in seen if "fit is poor" not in one],
    "said": model.predict_proba(load_iris().data[:3]).tolist()}))
"""


def fit(**environment):
    """What a process that fits an estimator says of its cache; on standard error it says nothing."""
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("JAX_COMPILATION_CACHE_DIR", "MERISTEM_CACHE")
    }
    done = subprocess.run([sys.executable, "-c", FIT], env=inherited | environment, check=True, capture_output=True, text=True)
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_a_second_process_finds_its_programs(tmp_path):
    environment = {"XDG_CACHE_HOME": str(tmp_path), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    first = fit(**environment)
    place = tmp_path / "meristem" / "jax" / cache.processor()
    entries = sorted(place.iterdir())
    assert first["folder"] == str(place) and first["hits"] == 0 < first["misses"] == len(entries) > 1
    assert place.stat().st_mode & 0o077 == 0  # nobody else writes what we run
    # What a writer that was killed left behind is as good as not there, and no one hears of it.
    entries[0].write_bytes(entries[0].read_bytes()[:100])
    second = fit(**environment)
    assert second["hits"] == len(entries) - 1 and second["said"] == first["said"]
    assert first["warnings"] == second["warnings"] == []


@pytest.fixture
def fresh(monkeypatch):
    """JAX as a person finds it who has set no cache; as it was, afterwards."""
    names = ["jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"]
    before = {name: getattr(jax.config, name) for name in names}
    jax.config.update("jax_compilation_cache_dir", None)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", cache.JAX_LEAST_SECONDS)
    monkeypatch.delenv("MERISTEM_CACHE", raising=False)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def test_another_folder(fresh, monkeypatch, tmp_path):
    monkeypatch.setenv("MERISTEM_CACHE", str(tmp_path))
    place = tmp_path / cache.processor()
    assert cache.keep_programs() == cache.keep_programs() == place and place.is_dir()
    assert jax.config.jax_compilation_cache_dir == str(place)
    assert jax.config.jax_persistent_cache_min_compile_time_secs == cache.LEAST_SECONDS


def test_what_jax_thinks_worth_keeping_is_still_what_it_was():
    """Or `keep_programs` would take its opinion for a person's."""
    code = "import jax; print(jax.config.jax_persistent_cache_min_compile_time_secs)"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("JAX_PERSISTENT")}
    said = subprocess.run([sys.executable, "-c", code], env=inherited, check=True, capture_output=True, text=True).stdout
    assert float(said) == cache.JAX_LEAST_SECONDS


def test_whoever_has_a_cache_keeps_it(fresh, tmp_path, monkeypatch):
    monkeypatch.setenv("MERISTEM_CACHE", str(tmp_path / "ours"))
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "own"))
    assert cache.keep_programs() is None and jax.config.jax_compilation_cache_dir == str(tmp_path / "own")
    assert not (tmp_path / "ours").exists()


def test_a_folder_that_cannot_be_made_is_not_used(fresh, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("MERISTEM_CACHE", str(tmp_path / "file"))
    assert cache.keep_programs() is None and jax.config.jax_compilation_cache_dir is None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_not_used(fresh, monkeypatch, tmp_path):
    (tmp_path / cache.processor()).mkdir(mode=0o500)
    monkeypatch.setenv("MERISTEM_CACHE", str(tmp_path))
    assert cache.keep_programs() is None and jax.config.jax_compilation_cache_dir is None


def test_what_was_used_longest_ago_goes(tmp_path):
    for second, name in enumerate("abcde"):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (1000 + second, 1000))
    os.utime(tmp_path / "a", (2000, 1000))  # read again
    (tmp_path / "folder").mkdir()
    cache.drop_oldest(tmp_path, 250)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "e", "folder"]
    cache.drop_oldest(tmp_path, 250)
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("said", ["off", "OFF", " off ", "0", "no", "false"])
def test_it_can_be_switched_off(said, fresh, monkeypatch):
    monkeypatch.setenv("MERISTEM_CACHE", said)
    assert cache.folder() is None and cache.keep_programs() is None and jax.config.jax_compilation_cache_dir is None


def test_where_the_folder_is(monkeypatch, tmp_path):
    monkeypatch.delenv("MERISTEM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "meristem" / "jax" / cache.processor()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.folder() == tmp_path / ".cache" / "meristem" / "jax" / cache.processor()
    monkeypatch.setenv("MERISTEM_CACHE", "~/programs")
    assert cache.folder() == Path(tmp_path) / "programs" / cache.processor()
