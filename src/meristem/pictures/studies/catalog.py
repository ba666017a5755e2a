"""Which pictures are drawn of a study: those that its summary.json names, or, of files without, those by its experiment's name.

A study gives its own as plain data, in its own file:

    pictures = LearningPictures(subject="my data", tasks={"hard": "the hard one"}, measures=(ERROR,))
    summary["pictures"] = pictures.as_json()

`CATALOG` holds those of the paper's studies; their files need not name them.
"""

from typing import Any

from meristem.data.spirals import TASKS
from meristem.pictures.studies.learning import LearningPictures
from meristem.pictures.studies.records import StudyPictures
from meristem.pictures.studies.solving import SolvingPictures
from meristem.show.measures import ERROR, MACRO_F1, WRONG_LABELS

KINDS: dict[str, type[StudyPictures]] = {kind.kind: kind for kind in (LearningPictures, SolvingPictures)}

CATALOG: dict[str, StudyPictures] = {
    "two-spirals": SolvingPictures("two spirals", {task: task for task in TASKS}),
    # Two classes are so much easier than ten that errors on one scale could not be read.
    "mnist": LearningPictures("MNIST", {"two": "two classes (0 or 1)", "ten": "ten classes"}, (ERROR,), ("test",), apart=True),
    "mirflickr": LearningPictures(
        "MIRFLICKR", {n: f"{n} labels" for n in ("10", "24", "38")}, (WRONG_LABELS, MACRO_F1), ("dev", "test")
    ),
    "tagging": LearningPictures("multi-label tagging", {}, (WRONG_LABELS, MACRO_F1), ("dev", "test")),
}


def pictures_of(experiment: str, named: Any) -> StudyPictures:
    """Those that summary.json names under "pictures", else those of the experiment; KeyError or TypeError where it cannot be.

    >>> import json
    >>> pictures_of("a new one", json.loads(json.dumps(CATALOG["mnist"].as_json()))) == CATALOG["mnist"]
    True
    """
    if named is None:
        return CATALOG[experiment]
    return KINDS[named["kind"]].from_json({name: value for name, value in named.items() if name != "kind"})
