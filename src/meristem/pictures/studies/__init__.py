"""Pictures; matplotlib is imported when one is drawn."""

from meristem.pictures.studies.drawing import draw as draw, have_matplotlib as have_matplotlib
