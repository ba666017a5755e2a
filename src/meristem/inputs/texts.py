"""How the text of a category is compared: exactly, but for one space on either side.

    normalized(raw) → text           " gold" and "gold " are "gold"; "gold  " is a text of its own
    spellings(text) → list of raw    every raw text with that normalized form

A spelling table is finite, so an ONNX graph (a lookup of texts) can hold all of it: `normalized(raw) == text` exactly where
`raw in spellings(text)`. Texts that mean "missing" are `MISSING_TEXTS`, and up to `MOST_SPACES` spaces with nothing else.
Imports nothing of meristem; tables, fields and exports import it.
"""

MOST_SPACES = 64  # a blank cell of a fixed width is missing
MISSING_TEXTS = frozenset(
    ["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-nan", "NAN", "NaT", "null", "NULL", "Null", "None", "?"]
)


def normalized(raw: str) -> str:
    """The text of a category: without the space on either side, if there is no more than one.

    >>> [normalized(raw) for raw in ("gold ", " gold", "gold  ", "   ", "very good")]
    ['gold', 'gold', 'gold  ', '', 'very good']
    """
    text = raw.strip(" ")
    if not text:
        return "" if len(raw) <= MOST_SPACES else raw
    return text if text == raw.removeprefix(" ").removesuffix(" ") else raw


def spellings(text: str) -> list[str]:
    """All raw texts that are normalized to this one.

    >>> spellings("gold"), spellings("gold  ")
    (['gold', ' gold', 'gold ', ' gold '], ['gold  '])
    """
    if not text:
        return [" " * n for n in range(MOST_SPACES + 1)]
    if normalized(text) != text:
        return []
    return [text] if text != text.strip(" ") else [text, f" {text}", f"{text} ", f" {text} "]


def is_missing(raw: str) -> bool:
    """Whether a text stands for no value.

    >>> [is_missing(raw) for raw in (" ?", "", "nothing")]
    [True, True, False]
    """
    return normalized(raw) in MISSING_TEXTS
