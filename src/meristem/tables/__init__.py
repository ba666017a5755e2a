"""Tables of numbers, categories and dates: read, encoded, fitted. `fit_table` and `TableModel` are the public names."""

from meristem.tables.fitting import fit_table as fit_table
from meristem.tables.table_model import TableModel as TableModel
