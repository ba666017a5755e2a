"""Tables of numbers, categories and dates: read, encoded, fitted. `fit_table` and `TableModel` are the public names."""

from meristem.tables import table_file as table_file  # registers the files of a table's model
from meristem.tables.fitting import fit_table as fit_table
from meristem.tables.table_model import TableModel as TableModel
