"""A real browser for tests of pages: headless Chromium of this machine, by playwright; tests skip where there is none.

    with browsing() as browser, seen(browser, url, width=390) as page: …

What a page says on the console, and what it asks anyone else for, fails the test.
"""

import importlib.util
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

ARGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
CHROMIUM = shutil.which("chromium")
HAVE_PLAYWRIGHT = importlib.util.find_spec("playwright") is not None
needs_browser = pytest.mark.skipif(
    CHROMIUM is None or not HAVE_PLAYWRIGHT, reason="a page is tested where chromium and playwright are installed"
)


@contextmanager
def browsing() -> Iterator[Any]:
    """The browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def seen(browser: Any, url: str, *, width: int = 1280, height: int = 900, scheme: str = "light") -> Iterator[Any]:
    """A page in a window of its own; fails where it says something on the console, or asks anyone else."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    try:
        page.goto(url)
        yield page
        assert said == [] and [one for one in asked if not one.startswith((url, "data:"))] == []
    finally:
        context.close()


def until(page: Any, expression: str, seconds: float) -> None:
    """Wait until an expression is true. (playwright's own way to wait needs `eval`, which a strict page forbids.)"""
    deadline = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, f"never came: {expression}"
        page.wait_for_timeout(50)


def overflow(page: Any) -> int:
    """How many pixels it is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))
