"""Penalty paths: many settings, folds and seeds trained as members of one population, and what they say together."""

from meristem.paths.penalty_path import path as path
from meristem.paths.result import Path as Path, Point as Point
