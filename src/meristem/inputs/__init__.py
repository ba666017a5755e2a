"""What a model reads: a person's columns, and the numbers that a network is given; inputs.py says how they hang together."""

from meristem.inputs.inputs import Inputs as Inputs
from meristem.inputs.preprocessor import Preprocessor as Preprocessor
from meristem.inputs.schema import Schema as Schema
