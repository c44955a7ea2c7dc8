"""A headless Chromium that shows pages from the disk, and says what it was asked to fetch."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

AXE = Path(__file__).parent / "axe-core" / "axe.min.js"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1500,1000",
)  # fmt: skip


def lacking() -> str | None:
    """Why pages cannot be looked at here; None where they can."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"{program} is not installed: apt-get install chromium chromium-driver"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed: it is of the extra test"
    return None


class Browser:
    """One window."""

    def __init__(self, driver: Any, pictures: Path) -> None:
        self.driver = driver
        self.pictures = pictures

    def open(self, path: Path, state: str = "") -> float:
        """Show a page from its beginning; milliseconds until it was ready, by the browser's own clock."""
        self.driver.get("about:blank")
        self.driver.get(f"{path.as_uri()}{state}")
        return self.ready()

    def ready(self) -> float:
        self.wait(lambda: self.run("return document.documentElement.dataset.ready"))
        return float(self.run("return performance.now()"))

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait(self, holds: Callable[[], object], seconds: float = 10) -> Any:
        end = time.monotonic() + seconds
        while not (found := holds()):
            assert time.monotonic() < end, "nothing came of it"
            time.sleep(0.02)
        return found

    def texts(self, selector: str) -> list[str]:
        """The text of each element that fits, as it is shown."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map(x => x.innerText)", selector)

    def press(self, *keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(*keys)

    def click(self, selector: str, at: int = 0) -> None:
        found = self.driver.find_elements("css selector", selector)[at]
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", found)
        found.click()

    def picture(self, name: str) -> None:
        self.driver.save_screenshot(str(self.pictures / f"{name}.png"))

    def faults(self) -> list[str]:
        """What the console complained of."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] != "INFO"]

    def fetched(self) -> set[str]:
        """Everything that pages asked for since the last time.

        The browser's own first tab may still be loading its parts when the window is ours; a page cannot ask for those.
        """
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return {one["request"]["url"] for one in asked if not one["documentURL"].startswith("chrome://")}

    def barriers(self, *rules: str, inside: str = "body") -> list[str]:
        """Serious faults that axe-core finds, each with an element that has it; by some rules, else by all."""
        self.run(AXE.read_text(encoding="utf-8"))
        found = self.driver.execute_async_script(
            "const done = arguments[2];"
            "axe.run(arguments[1], {runOnly: arguments[0]}).then(found => done(found.violations))",
            list(rules) or ["wcag2a", "wcag2aa", "wcag21aa"],
            inside,
        )
        return [
            f"{one['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
            for one in found
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"][:2]
        ]


@contextmanager
def browser(profile: Path, pictures: Path) -> Iterator[Browser]:
    """A window with an empty profile."""
    from selenium.webdriver import Chrome
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"--user-data-dir={profile}", "about:blank"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield Browser(driver, pictures)
    finally:
        driver.quit()
