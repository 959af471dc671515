"""Pictures of the product's pages, taken by a browser, and the figures of the documents: `make pictures`.

Each page of the demo program is taken on a computer (1280 px) and on a phone (375 px), with few colours so that a file
stays small. The pictures of the first tutorial are taken while its steps are followed, with the tables of its page.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import make_figures
from PIL import Image
from playwright.sync_api import Page, sync_playwright

FOLDER = Path(__file__).parent / "pictures"
TUTORIAL = Path(__file__).parent / "tutorials/first-weeks.md"
PROGRAM = "/programs/pharmacists"
PAGES = {
    "programs": "/", "new-program": "/new", "users": "/users", "history": "/history", "glossary": "/glossary", "help": "/help",
    "home": f"{PROGRAM}/status", "list": f"{PROGRAM}/list", "states": f"{PROGRAM}/states", "report-outcomes": f"{PROGRAM}/outcomes",
    "rounds": f"{PROGRAM}/rounds", "round": f"{PROGRAM}/rounds/30", "people": f"{PROGRAM}/people",
    "results": f"{PROGRAM}/results", "unreached": f"{PROGRAM}/unreached", "funder-report": f"{PROGRAM}/report",
    "shadow": f"{PROGRAM}/shadow", "settings": f"{PROGRAM}/settings", "webhooks": f"{PROGRAM}/webhooks", "audit": f"{PROGRAM}/audit",
}  # fmt: skip
SIZES = {"desktop": (1280, 800), "phone": (375, 760)}


FIGURE = (
    "--problem two-state-v1 --instances 10 --runs 4 --agents 50 --budget 10 --horizon 1000 --seed 7 "
    "--policy egt --policy wiql --policy thompson-whittle --policy lagrange"
)


def main() -> None:
    """Draw the figures, follow the tutorial, and take a picture of every page of a demo program."""
    FOLDER.mkdir(exist_ok=True)
    restive = Path(sys.executable).parent / "restive"
    figure = FOLDER / "two-state.png"
    subprocess.run([restive, "simulate", *FIGURE.split(), "--figure", figure], check=True, capture_output=True)
    shrink(figure)
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/demo.db"
        command = [restive, "desk", "demo", "--name", "pharmacists", "--store", store]
        subprocess.run(command, check=True, capture_output=True)
        with serve(restive, store) as address:
            take_pictures(address)
        with serve(restive, f"{folder}/team.db") as address, open_browser() as browser:
            page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
            page.goto(address)
            follow_first_weeks(page, Path(folder), lambda name: take_picture(page, f"first-weeks-{name}"))
    make_figures.main(FOLDER)


@contextmanager
def serve(restive: Path, store: str) -> Iterator[str]:
    """The address of a server over a store."""
    command = [restive, "serve", "--store", store, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as server:
        try:
            assert server.stderr is not None
            yield next(filter(None, (re.search(r"http://[\w.:]+", line) for line in server.stderr)))[0]
        finally:
            server.terminate()


@contextmanager
def open_browser() -> Iterator[Any]:
    """Chromium without a window."""
    browser_path = os.environ.get("RESTIVE_BROWSER", "/usr/bin/chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        yield browser
        browser.close()


def take_picture(page: Page, name: str) -> None:
    """Take the first screen of a page."""
    file = FOLDER / f"{name}.png"
    page.screenshot(path=file)
    shrink(file)


def follow_first_weeks(page: Page, folder: Path, look: Callable[[str], object]) -> None:
    """Follow the steps of the tutorial from the first page of an empty server; `look` is called at each of them."""
    tables = re.findall(r"```text\n(agent,state\n.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)
    look("first")
    page.get_by_role("link", name="Create the first program").click()
    look("templates")
    page.get_by_role("link", name="Pharmacy orders").click()
    page.get_by_label("Name of the program").fill("coupons")
    page.get_by_label("Budget", exact=True).fill("3")
    look("new")
    page.get_by_role("button", name="Create program").click()
    for week, table in enumerate(tables, start=1):
        if week > 1:
            page.get_by_role("link", name="Home").click()
            look("home")
            page.get_by_role("link", name="Decide the round").click()
        file = folder / f"week-{week}.csv"
        file.write_text(table, encoding="utf-8")
        page.get_by_label("File", exact=True).set_input_files(file)
        page.get_by_role("button", name="Check", exact=True).click()
        page.get_by_text("The table is valid").scroll_into_view_if_needed()
        look(f"check-{week}")
        page.get_by_role("button", name=re.compile("^Decide the week of")).click()
        page.wait_for_url("**/list#main")
        look(f"list-{week}")
    page.get_by_role("link", name="Results").first.click()
    look("results")
    page.get_by_role("link", name="restive").first.click()
    page.get_by_role("link", name="New program").click()
    look("demo")


def shrink(file: Path) -> None:
    """Reduce a picture to 64 colours."""
    Image.open(file).convert("RGB").quantize(64).save(file, optimize=True)


def take_pictures(address: str) -> None:
    """Take the first screen of every page in every size."""
    with open_browser() as browser:
        for size, (width, height) in SIZES.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
            for name, path in PAGES.items():
                page.goto(address + path)
                take_picture(page, f"{name}-{size}")


if __name__ == "__main__":
    main()
