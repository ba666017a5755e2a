"""Tables that are not what they seem: each mistake that people make with a file is one line, and says what to do."""

import html
import json

import numpy as np
import pytest

from commanding import meristem_here
from meristem import fit_table
from meristem.inputs import Schema
from meristem.tables.encoding import features
from meristem.tables.reading import read_table
from meristem.tables.split import TableSplit
from test_tables_commands import FEW, people

pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def refused(tmp_path, text, *args):
    (tmp_path / "table.csv").write_text(text)
    done = meristem_here("fit", tmp_path / "table.csv", "--out", tmp_path / "out", *args)
    assert done.returncode == 2 and done.stdout == "" and len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def understood(tmp_path, text, target, **how):
    (tmp_path / "table.csv").write_text(text)
    return TableSplit.of(read_table(tmp_path / "table.csv", **how), target=target)


def test_a_separator_is_named_and_taken(tmp_path):
    text = people(40).replace(",", "|")
    assert "target='rich' is not known: " in refused(tmp_path, text, "--target", "rich")
    assert "has one column, 'age|job|rich'; if '|' separates its columns, give --sep '|'." in refused(
        tmp_path, text, "--target", "rich"
    )
    assert "--sep='||' must be one character" in refused(tmp_path, text, "--target", "rich", "--sep", "||")
    assert list(understood(tmp_path, text, "rich", sep="|").table.columns) == ["age", "job", "rich"]
    wide = ",".join(f"column_{n}" for n in range(200))
    said = refused(tmp_path, f"{wide}\n{'1,' * 199}2\n", "--target", "rich")
    assert "--target='rich' is not known. Choose one of: column_0, " in said and len(said) < 400


def test_a_column_of_names_has_no_classes(tmp_path):
    text = "name,age\n" + "".join(f"patient {n},{n % 7}\n" for n in range(60))
    said = refused(tmp_path, text, "--target", "name")
    assert "target 'name' has 60 different values in 60 rows: no classes to learn; choose another target." in said
    said = refused(tmp_path, text.replace("patient ", ""), "--target", "name", "--task", "class")
    assert "no classes to learn; --task number, or task='number', if it is a quantity." in said


def test_a_budget_that_is_too_little_is_named_before_anything_is_fitted(tmp_path):
    said = refused(tmp_path, people(60), "--target", "rich", "--budget", "12", "--refit", "bag", "--body", "tunnel")
    assert said == "meristem: --budget=12 is shared by 5 networks and below the least, 20; give at least that.\n"
    assert not (tmp_path / "out").exists()
    with pytest.raises(ValueError, match=r"^budget=3 is below the smallest network, which has 4 parameters; raise it"):
        fit_table(tmp_path / "table.csv", target="rich", budget=3, refit="one", body="tunnel")


def test_what_is_doubtful_is_said(tmp_path):
    few = understood(tmp_path, "x,grade\n" + "".join(f"{n},{n % 5}\n" for n in range(100)), "grade").words()
    assert "target 'grade': 5 classes: it holds 5 different whole numbers (--task number, " in few[1]
    no_header = understood(
        tmp_path, "5.1,3.5,a\n" + "".join(f"{2 * n},{n / 2},{'ab'[n % 2]}\n" for n in range(40)), "a"
    ).words()
    assert no_header[-1] == "warning: names of columns are numbers, such as '5.1': if the table has no header, give it one"
    cases = ["Yes", "yes", "no"] * 10 + ["maybe"]
    said = understood(tmp_path, "x,rich\n" + "".join(f"{n},{one}\n" for n, one in enumerate(cases)), "rich").words()
    assert said[-2:] == [
        "warning: classes 'Yes' and 'yes' differ in case or spaces alone: they are taken as two",
        "warning: class 'maybe' has one row: nothing can be learned of it",
    ]
    assert not any(line.startswith("warning") for line in understood(tmp_path, people(60), "rich").words())


@pytest.mark.parametrize("rows", [60, 3000], ids=["few values", "more than are kept as texts"])
def test_decimal_commas_are_numbers_where_commas_separate_nothing(tmp_path, rows):
    sizes = np.random.default_rng(0).uniform(1, 2000, rows).round(3)
    sizes[0] = 3.0
    texts = ["3", *(f"{size:,.3f}".replace(",", " ").replace(".", ",").replace(" ", ".") for size in sizes[1:])]
    text = "size;list;side\n" + "".join(f"{one};1,2,{n % 3};{'lr'[n % 2]}\n" for n, one in enumerate(texts))
    known = understood(tmp_path, text, "side")
    assert "decimal commas are read as points in 'size'" in known.words()
    assert [column.kind for column in known.schema.fields] == ["number", "category"]
    np.testing.assert_allclose(features(known.schema, known.table)[:, 0], sizes)
    again = Schema.of_json(known.schema.as_json())
    np.testing.assert_allclose(features(again, read_table(tmp_path / "table.csv", again.texts))[:, 0], sizes)


def test_predict_keeps_columns_and_refuses_another_table(tmp_path):
    lines = people(60).splitlines()
    (tmp_path / "table.csv").write_text("\n".join([f"size,{lines[0]}", *(f"{n},{one}" for n, one in enumerate(lines[1:]))]))
    assert meristem_here("fit", tmp_path / "table.csv", "--target", "rich", "--out", tmp_path / "out", *FEW).returncode == 0
    model, new = tmp_path / "out" / "model.safetensors", tmp_path / "new.csv"
    ids = [f"person {n}" for n in range(1200)]
    new.write_text("id;size;age;job\n" + "".join(f"{one};2,5;40;baker\n" for one in ids))
    done = meristem_here("predict", model, new, "--keep", "id,age", "--sep", ";")
    lines = [line.split(",") for line in done.stdout.splitlines()]
    assert done.returncode == 0 and lines[0] == ["id", "age", "rich", "rich=no", "rich=yes"], done.stderr
    assert [line[0] for line in lines[1:]] == ids and {line[1] for line in lines[1:]} == {"40"}
    new.write_text('rich,"size, in cm",size,age,job\nno,25,2.5,40,baker\n')
    done = meristem_here("predict", model, new, "--keep", "size, in cm", "--keep", "rich,age")
    head, row = done.stdout.splitlines()
    assert head == '"size, in cm",rich,age,rich (predicted),rich=no,rich=yes' and row.startswith("25,no,40,")
    done = meristem_here("predict", model, new, "--keep", "name")
    assert done.returncode == 2 and "--keep='name' is not known" in done.stderr
    new.write_text("age,heart\n40,1\n")
    done = meristem_here("predict", model, new)
    assert done.returncode == 2 and done.stdout == ""
    assert "lacks 2 of the model's 3 columns: 'size', 'job'; give a table that has them." in done.stderr


NUMBERS, DATES, DROPPED, READ = "numbers", "dates", "dropped; write plain ", "read as categories; write "
WRITTEN = {
    "dollars": (lambda n: f'"${n * 31:,}.04"', NUMBERS, "$0.04", DROPPED),
    "euros": (lambda n: f"{n % 7}.93 €", NUMBERS, "0.93 €", READ),
    "shares": (lambda n: f"{n % 9}.0%", NUMBERS, "0.0%", READ),
    "thousands": (lambda n: f'"{100 + n // 1000},{n % 1000:03},485"', NUMBERS, "100,000,485", DROPPED),
    "gaps": (lambda n: n % 30 or "unknown", NUMBERS, "unknown", READ),
    "points": (lambda n: f"{n % 28 + 1:02}.07.2012", DATES, "01.07.2012", READ),
    "strokes": (lambda n: f"{n % 12 + 1}/{n % 28 + 1}/2021", DATES, "1/1/2021", READ),
    "months": (lambda n: f"{n % 28 + 1} July 2012", DATES, "1 July 2012", READ),
}


@pytest.mark.parametrize("rows", [300, 3000], ids=["few values", "more than are kept as texts"])
def test_numbers_and_dates_as_people_write_them_are_doubtful(tmp_path, rows):
    text = ",".join([*WRITTEN, "seat", "side"]) + "\n"
    for n in range(rows):
        text += ",".join(str(write(n)) for write, *_ in WRITTEN.values()) + f",{n % 20}{'AB'[n % 2]},{'lr'[n % 2]}\n"
    said = [line for line in understood(tmp_path, text, "side").words() if line.startswith("warning")]
    assert "write plain numbers, such as 8622.04, and leave a cell empty" in said[0] and "write dates as 2012-07-25" in said[-1]
    for line, (name, (_, things, example, found)) in zip(said, WRITTEN.items(), strict=True):
        words = f"looks like {things}, but {example!r} cannot be read as one: it is {found}"
        assert line.startswith(f"warning: column {name!r} {words}")


def test_what_was_doubtful_stands_in_the_report(tmp_path):
    lines, fees = people(1200).splitlines(), [f"fee {place}" for place in range(10)]
    rows = [f"number {n}," + f'"${1000 + n:,}",' * 10 + one for n, one in enumerate(lines[1:])]
    (tmp_path / "table.csv").write_text("\n".join([f"address,{','.join(fees)},{lines[0]}", *rows]))
    how = ["--test", "0.96", *FEW]
    done = meristem_here("fit", tmp_path / "table.csv", "--target", "rich", "--out", tmp_path / "out", *how)
    assert done.returncode == 0, done.stderr
    doubts = doubts_in(tmp_path / "out")
    for name in fees:
        doubt = f"olumn {name!r} looks like numbers, but '$1,000' cannot be read as one: it is dropped; write plain numbers"
        assert f"warning: c{doubt}" in done.stderr and (f"C{doubt}" in doubts) is (name in fees[:8])
    assert "2 more warnings" in doubts
    assert "Columns with more than 1,000 categories are dropped: “address”, “fee 0”, " in doubts
    assert "“fee 6” and 3 more." in doubts
    warnings = json.loads((tmp_path / "out" / "summary.json").read_text())["warnings"]
    assert len([line for line in warnings if "looks like numbers" in line]) == len(fees)


def doubts_in(out):
    page = html.unescape((out / "report.html").read_text())
    return page.partition("Caveats</h2>")[2].partition("</ul>")[0]


@pytest.mark.parametrize("rows", [300, 3000], ids=["few values", "more than are kept as texts"])
@pytest.mark.parametrize("write", [lambda n: f'"${19 * n:,}.00"', lambda n: f"{n / 8}%", lambda n: n if n % 30 else f"no {n}"])
def test_a_target_that_looks_like_numbers_is_refused_with_what_to_do(tmp_path, rows, write):
    text = "age,price\n" + "".join(f"{n % 7},{write(n)}\n" for n in range(rows))
    example = str(write(0)).strip('"')
    said = refused(tmp_path, text, "--target", "price")
    assert f"'price' looks like numbers, but {example!r} cannot be read as one; write plain numbers, such as " in said
    said = refused(tmp_path, text, "--target", "price", "--task", "number")
    assert f"--task='number': column 'price' looks like numbers, but {example!r} cannot be read as one; write plain" in said


def test_a_target_that_looks_like_dates_is_refused_with_what_to_do(tmp_path):
    text = "age,day\n" + "".join(f"{n % 7},{n % 28 + 1}.{n % 12 + 1}.{2000 + n}\n" for n in range(60))
    said = refused(tmp_path, text, "--target", "day")
    assert "target 'day' looks like dates, but '1.1.2000' cannot be read as one; make numbers of them first, such as " in said


def test_a_class_of_one_row_is_learned_from_and_the_others_are_held_out_as_much_of_each(tmp_path):
    labels = np.random.default_rng(0).permutation(["often"] * 150 + ["seldom"] * 40 + ["rare"] * 10 + ["once"] + ["twice"] * 2)
    text = "x,grade\n" + "".join(f"{n},{one}\n" for n, one in enumerate(labels))
    known = understood(tmp_path, text, "grade")
    held = dict(zip(*np.unique(known.target.values[known.test_rows], return_counts=True), strict=True))
    assert held.keys() <= {"often", "seldom", "rare", "twice"} and len(known.test_rows) == 41 and len(known.train_rows) == 162
    assert held["often"] in (30, 31) and held["seldom"] == 8 and held["rare"] == 2
    assert "once" in known.target.values[known.train_rows] and "warning: class 'once' has one row" in known.words()[-1]
    assert not set(known.train_rows) & set(known.test_rows)


def test_a_column_that_counts_the_rows_is_doubtful(tmp_path):
    rows = [f"{100000 + n},{n},{n % 50},{2 * n},{n + 0.5},{'lr'[n % 2]}\n" for n in range(1500)]
    rows[700] = rows[700].replace(",700,", ",,")
    said = understood(tmp_path, f"patient,gap,turn,even,half,side\n{''.join(rows)}", "side").words()
    assert [line for line in said if line.startswith("warning")] == [
        "warning: column 'patient' counts the rows, from 100000 on: if it is only an index, remove it from the table"
    ]
