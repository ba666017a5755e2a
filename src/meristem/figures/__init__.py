"""Pictures; matplotlib is imported when one is drawn."""

from meristem.figures.drawing import draw as draw, have_matplotlib as have_matplotlib
