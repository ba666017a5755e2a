"""From a table's columns to the inputs of a network; inputs.py shows both steps."""

from meristem.inputs.inputs import Inputs as Inputs
from meristem.inputs.preprocessor import Preprocessor as Preprocessor
from meristem.inputs.schema import Schema as Schema
