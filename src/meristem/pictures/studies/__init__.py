"""Figures of a study, drawn from its files (`draw`); a study says what is drawn by LearningPictures or SolvingPictures."""

from meristem.pictures.figure_style import have_matplotlib as have_matplotlib
from meristem.pictures.studies.study_figures import draw as draw, draw_study as draw_study
from meristem.pictures.studies.study_pictures import (
    ImagePictures as ImagePictures,
    LearningPictures as LearningPictures,
    SolvingPictures as SolvingPictures,
)
