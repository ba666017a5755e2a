"""The page of `meristem watch --serve` in a real browser: a run of another process, from before it begins to its end."""

import json

from browser import browsing, needs_browser, overflow, seen, until
from killing import SECONDS, start
from meristem.watch.server import serving
from test_watch import STUDY, forged, line

PATIENCE = 1000 * SECONDS


@needs_browser
def test_a_run_is_followed_to_its_end(tmp_path):
    out = tmp_path / "out"
    with serving(out) as url, browsing() as browser, seen(browser, url) as page:
        page.wait_for_selector("#status[data-is=waiting] >> text=waiting for a run", timeout=PATIENCE)
        with start("-m", "meristem", *STUDY, "--task", "difficult", "--max-epochs", "1000", "--out", str(out)) as process:
            page.wait_for_selector("polyline.line", state="attached", timeout=PATIENCE)
            first = epoch_of(page)
            until(page, f"{EPOCH} > {first} || !!document.querySelector('[data-is=finished]')", SECONDS)
            assert page.locator("#status").get_attribute("role") == "status", "what changes there is announced"
            _, errors = process.communicate(timeout=SECONDS)
            assert process.returncode == 0, errors
        page.wait_for_selector("#status[data-is=finished]", timeout=PATIENCE)
        assert page.inner_text("#status b") == "finished" and page.title() == "finished – meristem watch"
        told = [json.loads(each) for each in (out / ".meristem-run" / "epochs.jsonl").read_text().splitlines()]
        assert epoch_of(page) == max(each["epoch"] for each in told) > first
        assert page.locator(".members button").count() == 2 and page.locator("polyline.line").count() == 6
        labels = [one.get_attribute("aria-label") for one in page.locator("svg[role=img]").all()]
        assert len(labels) == 5 and all(labels) and "of 2 networks over epochs 1 to" in labels[0]
        assert overflow(page) <= 0
        button = page.locator(".members button").first
        button.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("polyline.this", state="attached")
        assert button.get_attribute("aria-pressed") == "true"


@needs_browser
def test_the_best_network_and_those_that_left_are_marked_at_any_width_and_on_paper(tmp_path):
    settings = {str(m): {"penalty": 0.003, "l2": 10.0 ** -(m // 5), "fold": m % 5, "left": int(m < 5)} for m in range(15)}
    lines = [
        json.loads(line(m, e, "search")) | {"dev_loss": 1 + (m != 7)} for m in range(15) for e in range(1, 9 if m < 5 else 41)
    ]
    forged(tmp_path / "out", "".join(json.dumps(each) + "\n" for each in lines), members={"search": settings})
    with serving(tmp_path / "out") as url, browsing() as browser:
        for width, scheme, media in ((390, "dark", "screen"), (1600, "light", "screen"), (1280, "dark", "print")):
            with seen(browser, url, width=width, scheme=scheme) as page:
                page.wait_for_selector(".is-best", timeout=PATIENCE)
                page.emulate_media(media=media)
                assert page.inner_text(".is-best .top").replace("\xa0", " ").startswith("λ 0.003, l2 0.1, fold 2")
                assert page.locator(".has-left").count() == 5 and page.locator("polyline.left").count() == 15
                colors = "new Set([...document.querySelectorAll('.top i')].map(e => getComputedStyle(e).backgroundColor)).size"
                assert page.evaluate(colors) == 3 and overflow(page) <= 0, "a color of each setting"


EPOCH = """(() => {
    const texts = [...document.querySelectorAll("summary span")].map(one => one.textContent).join();
    return Math.max(0, ...[...texts.matchAll(/epoch (?:[0-9]+ … )?([0-9]+)/g)].map(one => Number(one[1])));
})()"""


DRAWN = """(() => {
    const begin = performance.now();
    sections[0].seen = null;
    drawGroups();
    return performance.now() - begin;
})()"""


def epoch_of(page) -> int:
    """The latest epoch that the page tells of."""
    return int(page.evaluate(EPOCH))


@needs_browser
def test_many_members_fit_a_phone_and_what_files_say_is_text(tmp_path):
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>" + "x" * 140  # a group's name has at most 200
    lines = "".join(line(m, e, evil, layers=10) for e in range(1, 101) for m in range(64))
    settings = {str(m): {"penalty": 0.003, "l2": 10.0 ** -(m // 5), "fold": m % 5} for m in range(63)}
    file = forged(tmp_path / "out", lines, command=f"meristem {evil}", members={evil: settings})
    with serving(tmp_path / "out") as url, browsing() as browser:
        for width, scheme in ((390, "dark"), (1280, "light")):
            with seen(browser, url, width=width, scheme=scheme) as page:
                page.wait_for_selector(".members li:nth-child(64)", timeout=PATIENCE)
                assert page.locator("img").count() == 0 and page.inner_text("h2") == evil
                assert overflow(page) <= 0
                called = [page.inner_text(f".members li:nth-child({n}) .top > span") for n in (8, 64)]
                assert [name.replace("\xa0", " ") for name in called] == ["λ 0.003, l2 0.1, fold 2", "network 63"]
                took = page.evaluate(DRAWN)
                assert took < 2000, "milliseconds, on a machine that does much else"
                with file.open("a") as more:
                    more.write(line(0, 100 + width, evil, layers=10))
                until(page, f"{EPOCH} === {100 + width}", SECONDS)
