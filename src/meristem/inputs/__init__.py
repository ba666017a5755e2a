"""From a table's columns to the inputs of a network; schema.py shows both steps."""

from meristem.inputs.preprocessor import Preprocessor as Preprocessor
from meristem.inputs.schema import Inputs as Inputs, Schema as Schema
