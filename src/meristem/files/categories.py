"""How many categories a column of a table's model may have: as many as a table's column has different texts when it is learned.

    check_categories("color", 3)            ValueError of one line beyond 1,000

More would be a forged file: rows are counted by numbers of two bytes. The encoding of columns calls it; imports nothing of
meristem.
"""

MOST_CATEGORIES = 1000  # tables/column.py: MOST_TEXTS


def check_categories(name: str, n: int) -> None:
    """Raise ValueError of one line where a column has more categories than any that was learned.

    >>> check_categories("color", 40_000)
    Traceback (most recent call last):
    ValueError: its column 'color' has 40,000 categories, and a table's has at most 1,000; use a copy, or fit it again.
    """
    if n > MOST_CATEGORIES:
        raise ValueError(
            f"its column {str(name)[:60]!r} has {n:,} categories, and a table's has at most {MOST_CATEGORIES:,}; "
            "use a copy, or fit it again."
        )
