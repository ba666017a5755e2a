"""One column, as a table that lies in memory has it."""

from meristem.tables.frames import table_of


def column_of(name, values, known_texts=None):
    return table_of({name: values}, None if known_texts is None else {name: known_texts})[name]
