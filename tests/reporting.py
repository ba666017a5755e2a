"""What the tests of reports share: small data, quick fits, and a page taken apart."""

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas

import meristem

QUICK = {"max_width": 8, "max_epochs": 3, "random_state": 0}  # programs that other tests compile, too
SHORT_SEARCH = {"cv": 2, "depth": 1, "max_width": 4, "l2s": [1e-4], "refit": "bag"}  # where what ships is not the subject
SEARCHED = {"penalties": [1e-3, 1e-1], "l2s": [1e-4], "input_dropouts": [0.0], "cv": 2, "halving": False}
EVIL = "<script>alert(1)</script>"
LABELS = np.array(["no", '"><img src=x onerror=alert(1)>'])
VOID = {"meta", "link"}


def rows(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Four columns with holes, of which the first says on which side of 0 a row is."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    side = X[:, 0] > 0
    X[rng.random(X.shape) < 0.02] = np.nan
    return X, side


def framed(X: np.ndarray) -> pandas.DataFrame:
    """With names, one of which a careless page would run."""
    return pandas.DataFrame(X, columns=[EVIL, "b & c", 'd"e', "x" * 90])


NAMES = [f"{body}{kind}" for kind in ("Classifier", "Regressor") for body in ("Tunnel", "Budding", "Highway")]
SEARCHES = [f"{body}{kind}CV" for kind in ("Classifier", "Regressor") for body in ("Tunnel", "Budding")]


def judged(name: str, n: int = 40, seed: int = 1) -> tuple[pandas.DataFrame, np.ndarray]:
    """Rows for the estimator of this name."""
    X, side = rows(n, seed)
    return framed(X), LABELS[side.astype(int)] if "Classifier" in name else side + 0.1 * np.nan_to_num(X[:, 1])


def fitted(name: str) -> Any:
    """An estimator, quickly; a tunnel that is searched for may close its inputs, too."""
    own: dict[str, Any] = {"max_leaves": 2} if "Budding" in name else {"depth": 2}
    own |= SEARCHED if name.endswith("CV") else {}
    own |= {"feature_gates": True} if name == "TunnelClassifierCV" else {}
    return getattr(meristem, name)(**QUICK, **own).fit(*judged(name, 60, seed=0))


class Page(HTMLParser):
    """The elements of a page: tags are closed in order, ids are given once."""

    def __init__(self, text: str):
        super().__init__()
        self.text, self.open, self.ids, self.figures, self.headings = text, [], [], {}, []  # type: ignore[var-annotated]
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == [] and len(set(self.ids)) == len(self.ids)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = dict(attrs)
        if "id" in own:
            self.ids.append(own["id"])
        if tag == "svg":
            assert own["role"] == "img"
            self.figures[str(own["id"]).removeprefix("figure-")] = own.get("aria-labelledby") or own["aria-label"]
        if tag in ("h1", "h2", "h3"):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    @property
    def said(self) -> str:
        return " ".join(self.words)
