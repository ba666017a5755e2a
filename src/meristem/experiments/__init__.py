"""The studies, one file each; to add one, write a file with a `Study` (see study.py) and name it here."""

from typing import Any

from meristem.experiments import mirflickr, mnist, tagging, two_spirals
from meristem.experiments.study import Study

STUDIES: dict[str, Study[Any]] = {
    study.name: study for study in (two_spirals.STUDY, mnist.STUDY, mirflickr.STUDY, tagging.STUDY)
}
