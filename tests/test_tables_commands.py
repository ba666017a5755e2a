"""`meristem fit` and `meristem predict`: each option, what may come in, the folder that they write to, and what is refused."""

import csv
import gzip
import hashlib
import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import meristem
from commanding import meristem_here
from meristem.folders.run_folder import take_lock
from meristem.folders.run_record import is_finished
from meristem.tables.reading import read_table
from meristem.tables.split import TableSplit
from reporting import Page

pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
FEW = ["--max-epochs", "2", "--budget", "900"]  # with a budget there is no price to search for


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    age, job = rng.integers(18, 80, n), rng.choice(["baker", "smith"], n)
    rich = np.where(age + 20 * (job == "smith") + rng.normal(0, 5, n) > 55, "yes", "no")
    return "age,job,rich\n" + "".join(f"{a},{j},{r}\n" for a, j, r in zip(age, job, rich, strict=True))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    where = tmp_path_factory.mktemp("people")
    (where / "people.csv").write_text(people(200))
    (where / "others.csv").write_text(people(40, seed=1))
    (where / "people.csv.gz").write_bytes(gzip.compress(people(200).encode()))
    return where


def summary(out):
    return json.loads((out / "summary.json").read_text())


@pytest.fixture(scope="module")
def fitted(place):
    """A fit that was given every option."""
    out = place / "out"
    how = ["--test-file", place / "others.csv", "--body", "budding", "--rule", "1se", "--seed", "3", "--task", "class"]
    done = meristem_here("fit", place / "people.csv.gz", "--target", "rich", "--out", out, *how, *FEW)
    assert done.returncode == 0, done.stderr
    return out


def test_options_are_what_is_done(fitted):
    facts = summary(fitted)
    assert facts["estimator"] == "BuddingClassifierCV" and facts["rule"] == "1se" and facts["budget"] == 900
    assert facts["n_parameters"] <= 900 and facts["seed"] == 3
    assert (
        facts["table"].endswith("people.csv.gz")
        and facts["rows"]["train"] == 200
        and facts["rows"]["test"] == 40
        and facts["why"] == "2 classes, as requested"
    )


def test_the_table_that_it_was_tested_on_is_named_with_its_digest(fitted, place):
    digest = hashlib.sha256((place / "others.csv").read_bytes()).hexdigest()
    test = summary(fitted)["test_table"]
    assert test["table"].endswith("others.csv") and test["sha256"] == digest
    for page in (fitted / "report.html", meristem.load(fitted / "model.safetensors").report(place / "again.html")):
        said = Page(page.read_text()).said
        assert "others.csv" in said and digest in said and "200: 200 for training" in said and "40 with a target" in said
    told = TableSplit.of(read_table(place / "people.csv"), target="rich", test=place / "others.csv").words()[0]
    assert told.endswith("200 rows; 200 to learn from, 40 of " + repr(str(place / "others.csv")) + " to test on")


def test_a_number_from_standard_input(place, monkeypatch):
    codes = people(200).replace("yes", "1").replace("no", "0")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(codes.encode())))
    done = meristem_here("fit", "-", "--target", "rich", "--task", "number", "--test", "0.5", "--out", place / "piped", *FEW)
    assert done.returncode == 0, done.stderr
    facts = summary(place / "piped")
    assert facts["task"] == "number" and facts["table"] == "standard input" and facts["rows"]["test"] == 100
    assert (
        facts["test_table"] is None and "200: 100 for training, 100 held out" in (place / "piped" / "report.html").read_text()
    )
    sizes = {
        line.split()[0]: line.split()[-1] for line in done.stdout.partition("all metrics")[0].splitlines() if " to " in line
    }
    assert sizes == {"found": f"{facts['n_parameters']:,}", "constant": "1", "linear": "3", "boosting": "–", "mlp": "401"}
    assert "-0.000" not in done.stdout + done.stderr


def test_predict_ignores_further_columns_and_says_what_it_misses(fitted, tmp_path):
    (tmp_path / "new.csv").write_text("name,job\nAda,smith\nBob,pilot\nEve,\n")
    done = meristem_here("predict", fitted / "model.safetensors", tmp_path / "new.csv", "--out", tmp_path / "said.csv")
    assert done.returncode == 0 and done.stderr.splitlines() == [
        "meristem: column 'age' is not there: missing in every row",
        "meristem: column 'job': 1 row of unseen categories, such as 'pilot'",
    ]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "said.csv").read_text())))
    assert [list(row) for row in rows] == [["rich", "rich=no", "rich=yes"]] * 3
    for row in rows:
        shares = {name.removeprefix("rich="): float(row[name]) for name in ("rich=no", "rich=yes")}
        assert row["rich"] == max(shares, key=shares.get) and sum(shares.values()) == pytest.approx(1, abs=1e-5)


# ---- the folder


def test_the_folder_is_a_runs_and_what_is_not_ours_stays(fitted, place):
    before = summary(fitted)
    assert is_finished(fitted, before["run"])
    (fitted / "notes.txt").write_text("mine")
    again = ["fit", place / "people.csv", "--target", "rich", "--out", fitted, *FEW]
    held = take_lock(fitted / ".meristem-run" / "lock")
    done = meristem_here(*again)
    held.close()
    assert done.returncode == 2 and "is writing to this folder" in done.stderr and summary(fitted) == before
    leftover = fitted / f".meristem-{2**22 + 1}-0123456789abcdef"
    leftover.write_bytes(b"a part")
    done = meristem_here(*again)
    assert done.returncode == 0 and "replaces the run of 20" in done.stderr.splitlines()[0]
    assert (fitted / "notes.txt").read_text() == "mine" and not leftover.exists()
    assert summary(fitted)["run"] != before["run"] and is_finished(fitted, summary(fitted)["run"])


def test_a_file_that_is_not_ours_is_not_replaced(place):
    out = place / "theirs"
    out.mkdir()
    (out / "model.onnx").write_bytes(b"theirs")
    done = meristem_here("fit", place / "people.csv", "--target", "rich", "--out", out, *FEW)
    assert done.returncode == 2 and "model.onnx' is not a file that a run of meristem's left there" in done.stderr
    assert len(done.stderr.splitlines()) == 1 and (out / "model.onnx").read_bytes() == b"theirs"


# ---- what is refused

HEAD = b"age,rich\n31,yes\n"
BAD = {
    "no such target": (HEAD, "job", "target='job' is not known"),
    "one class": (HEAD * 1 + b"4,yes\n", "rich", "column 'rich' is 'yes' in every row that has one"),
    "an empty file": (b"", "rich", "is empty"),
    "a header alone": (b"age,rich\n", "rich", "has columns and no rows"),
    "a ragged line": (HEAD + b"4\n", "rich", "line 3 has 1 field"),
    "a NUL byte": (HEAD + b"4,\0\n", "rich", "line 3 holds a NUL byte"),
    "a long line": (HEAD + b"4" * (17 * 2**20), "rich", "line 3 is longer than 16 MiB"),
    "two encodings": (HEAD + "5,é\n".encode() + "4,é\n".encode("latin-1"), "rich", "line 4 holds the byte 0xe9"),
    "no target at all": (b"age,rich\n1,\n2,NA\n", "rich", "column 'rich' is missing in every row"),
    "an open quote": (HEAD + b'4,"no\n', "rich", "a quote is opened"),
    "numbers beyond": (b"age,rich\n" + b"".join(b"%d,%de300\n" % (n, n + 1) for n in range(40)), "rich", "holds 4e+301"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_tables_are_one_line_and_nothing_is_written(bad, tmp_path):
    data, target, said = BAD[bad]
    (tmp_path / "bad.csv").write_bytes(data)
    done = meristem_here("fit", tmp_path / "bad.csv", "--target", target, "--out", tmp_path / "out")
    assert done.returncode == 2 and done.stdout == "" and said in done.stderr, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and [one.name for one in tmp_path.iterdir()] == ["bad.csv"]


def test_a_line_without_end_is_refused_before_it_is_held(tmp_path):
    with open(tmp_path / "bad.csv", "wb") as file:  # two gigabytes that are not on the disk
        file.write(HEAD + b"4")
        file.truncate(2**31)
    done = meristem_here("fit", tmp_path / "bad.csv", "--target", "rich", "--out", tmp_path / "out")
    assert done.returncode == 2 and "line 3 holds a NUL byte at place 2" in done.stderr


@pytest.mark.filterwarnings("ignore:Error writing persistent compilation cache entry")  # what takes long on a busy machine
@pytest.mark.usefixtures("fitted")
def test_a_disk_that_is_full_leaves_what_was_there(place):
    import resource

    out = place / "full"
    arguments = ["fit", place / "people.csv", "--target", "rich", "--out", out, *FEW]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, before[1]))  # a file may not grow beyond, as on a disk that is full
    try:
        done = meristem_here(*arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert done.returncode == 1 and "cannot be written" in done.stderr.splitlines()[-1], done.stderr
    assert [one.name for one in out.iterdir()] == [".meristem-run"]
