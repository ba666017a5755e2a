"""Pictures of a study, drawn from its two files; matplotlib is imported when one is drawn.

`draw(out)` draws them; a study says what is to be drawn of it by `LearningPictures` or `SolvingPictures`, see `records.py`.
"""

from meristem.pictures.sheet import have_matplotlib as have_matplotlib
from meristem.pictures.studies.drawing import draw as draw, drawn as drawn
from meristem.pictures.studies.learning import LearningPictures as LearningPictures
from meristem.pictures.studies.solving import SolvingPictures as SolvingPictures
