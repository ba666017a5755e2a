"""A report as a browser shows it: on a desk and on a phone, in light and dark, on paper; nothing from a network, no errors."""

import re

import pytest

from browser import browsing, needs_browser
from reporting import Page, fitted, judged

pytestmark = [
    needs_browser,
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
BOXES = (
    "[...document.querySelectorAll('svg')].map(s => [s.id, s.getBoundingClientRect().width, s.getBoundingClientRect().height])"
)
OUTSIDE = """[...document.querySelectorAll('svg text, svg circle, svg use, svg rect:not(clipPath rect)')].filter(e => {
  const own = e.getBoundingClientRect(), all = e.ownerSVGElement.getBoundingClientRect();
  return own.left < all.left - 2 || own.right > all.right + 2 || own.bottom > all.bottom + 2 || own.top < all.top - 2;
}).map(e => e.outerHTML.slice(0, 120))"""
TALLEST = "Math.max(...[...document.querySelectorAll('#score td, #score th')].map(e => e.getBoundingClientRect().height))"
COLORS = """[...document.querySelectorAll('p, td, th, dt, dd, a, h1, h2, summary, svg text:not([fill*="--ground"])')].map(e => {
  const style = getComputedStyle(e);
  return e.namespaceURI.includes('svg') ? style.fill : style.color;
})"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A page with a path and a square of classes, its names as wicked as they come."""
    model = fitted("TunnelClassifierCV")
    return model.report(tmp_path_factory.mktemp("report") / "report.html", *judged("TunnelClassifierCV", 60))


@pytest.fixture(scope="module")
def browser():
    with browsing() as opened:
        yield opened


def luminance(color):
    """Of a color as CSS has it, by the formula of WCAG."""
    parts = [int(text) / 255 for text in re.findall(r"\d+", color)[:3]]
    red, green, blue = (one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("width", [1600, 1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_seen_whole(report, browser, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    assert said == [] and [url for url in asked if not url.startswith(("file:", "data:"))] == []
    boxes = page.evaluate(BOXES)
    assert {name for name, _, _ in boxes} == {f"figure-{name}" for name in Page(report.read_text()).figures} and len(boxes) >= 7
    assert all(wide > 200 and high > 40 for _, wide, high in boxes), boxes
    assert page.evaluate("[document.scrollingElement.scrollWidth, innerWidth]") == [width, width]
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate(TALLEST) < 60  # two lines: no column is squeezed
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (luminance(ground) > 0.5) == (scheme == "light")
    assert min(contrast(color, ground) for color in set(page.evaluate(COLORS))) >= 4.5
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the sections"
    names = page.get_by_role("img").all()
    assert len(names) == len(boxes)
    context.close()


def test_it_prints_with_its_tables_unfolded(report, browser):
    page = browser.new_page(color_scheme="dark")
    page.goto(report.as_uri())
    page.emulate_media(media="print")
    assert luminance(page.evaluate("getComputedStyle(document.body).backgroundColor")) == pytest.approx(1)
    assert page.evaluate("document.querySelector('details table').getBoundingClientRect().height") > 20
    assert len(page.pdf(format="A4")) > 10_000
    page.close()
