"""The page in a real browser: `pytest -m browser`, with chromium and its driver installed."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

selenium: Any = pytest.importorskip("selenium")
pytest.importorskip("fastapi")

from selenium.common.exceptions import StaleElementReferenceException  # noqa: E402
from selenium.webdriver import Chrome, ChromeOptions, ChromeService  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402
from support.serving import TITLES, titled_ratings  # noqa: E402

pytestmark = pytest.mark.browser

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
PATIENCE = 20  # seconds


def running(model: Any) -> Iterator[str]:
    """Serve a model in a thread; the address."""
    import uvicorn

    from ordrec.serve.app import make_app

    opened = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(make_app(model, "films"), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
    thread.start()
    yield f"http://127.0.0.1:{opened.getsockname()[1]}/"
    server.should_exit = True
    thread.join()
    opened.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    from ordrec.recommend import RatingPredictor, Recommender

    yield from running(Recommender(rating=RatingPredictor("fast")).fit(titled_ratings()))


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or chromium is None:
        pytest.skip("install chromium and chromium-driver to run this test")
    options = ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = Chrome(options=options, service=ChromeService(driver))
    yield chrome
    assert chrome.get_log("browser") == []  # no error in the script, nothing refused by the policy
    chrome.quit()


def opened(browser: Any, address: str, width: int = 1200) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(address)
    until(browser, lambda: len(listed(browser)) == 10 and all_of(browser, "#found li"))


def until(browser: Any, condition: Any) -> Any:
    replaced = [StaleElementReferenceException]  # by an element of the next answer
    return WebDriverWait(browser, PATIENCE, 0.1, replaced).until(lambda _: condition())


def all_of(browser: Any, selector: str) -> list[Any]:
    return browser.find_elements(By.CSS_SELECTOR, selector)


def listed(browser: Any) -> list[str]:
    script = "return [...document.querySelectorAll('#listed .title')].map((e) => e.textContent)"
    return browser.execute_script(script)


def search(browser: Any, words: str, title: str) -> None:
    field = browser.find_element(By.ID, "search")
    field.clear()
    field.send_keys(words)
    until(browser, lambda: [e.text for e in all_of(browser, "#found .title")] == [title])


def settled(browser: Any, n_ratings: int) -> None:
    """Wait until the list is that of so many ratings, with its reasons."""
    until(
        browser,
        lambda: (
            f"From {n_ratings} rating" in browser.find_element(By.ID, "order").text
            and all("because" in why.text or "why" in why.text for why in all_of(browser, ".why"))
        ),
    )


def test_rating_titles_changes_the_list(browser: Any, address: str) -> None:
    opened(browser, address)
    before = listed(browser)
    search(browser, "amelie", TITLES[0])
    all_of(browser, "#found .steps span")[4].click()
    settled(browser, 1)
    search(browser, "stalker", TITLES[3])
    all_of(browser, "#found .steps span")[0].click()
    settled(browser, 2)
    rated = {row.text for row in all_of(browser, "#rated li")}
    assert rated == {f"{TITLES[0]}\n5", f"{TITLES[3]}\n1"}
    after = listed(browser)
    assert after != before
    assert not {TITLES[0], TITLES[3]} & set(after)
    assert len(all_of(browser, "#listed svg.chart")) == 10
    assert len(all_of(browser, "#listed li:first-child svg.chart rect")) == 5
    all_of(browser, "#listed summary")[0].click()
    sums = [row.text for row in all_of(browser, "#listed li:first-child .details tr")]
    assert sums[-1].endswith("expected rating")
    assert len(sums) > 3
    browser.find_element(By.ID, "forget").click()
    until(browser, lambda: listed(browser) == before)


def test_the_keyboard_is_enough(browser: Any, address: str) -> None:
    opened(browser, address)
    search(browser, "third man", TITLES[1])
    active = browser.switch_to.active_element
    active.send_keys(Keys.TAB)
    slider = browser.switch_to.active_element
    assert slider.get_attribute("aria-label") == f"Your rating of {TITLES[1]}"
    for _ in range(3):
        browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    settled(browser, 1)
    slider = browser.switch_to.active_element
    assert slider.get_attribute("aria-valuetext") == "3"
    assert all_of(browser, "#rated li")[0].text == f"{TITLES[1]}\n3"
    slider.send_keys(Keys.HOME)  # to "not rated"
    until(browser, lambda: not all_of(browser, "#rated li"))
    assert browser.switch_to.active_element.get_attribute("id") == "search"


def test_titles_are_text_and_not_html(browser: Any, address: str) -> None:
    opened(browser, address)
    search(browser, "lucky", TITLES[2])
    assert all_of(browser, "#found b") == []


@pytest.mark.parametrize("path", ["", "docs"])
def test_it_fits_a_narrow_window_and_asks_nobody_else(
    browser: Any, address: str, path: str
) -> None:
    opened(browser, address, 400)
    if path:
        browser.get(address + path)
        until(browser, lambda: browser.execute_script("return document.readyState") == "complete")
    else:
        all_of(browser, "#listed summary")[0].click()
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
    events = [json.loads(row["message"])["message"] for row in browser.get_log("performance")]
    asked = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert address in asked
    assert [url for url in asked if not url.startswith((address, "data:", "chrome"))] == []


def test_a_model_that_takes_in_nobody_says_so(browser: Any) -> None:
    from ordrec.recommend import GlobalMean

    for place in running(GlobalMean().fit(titled_ratings())):
        browser.get(place)
        until(browser, lambda: browser.find_element(By.ID, "problem").is_displayed())
        assert "cannot take in new people" in browser.find_element(By.ID, "problem").text
