"""Pictures of the product's pages, taken from the demo program by a browser: `make pictures`.

Each page is taken on a computer (1280 px) and on a phone (375 px), with few colours so that a file stays small.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parent / "pictures"
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
    """Make a demo program, serve it, and take a picture of every page."""
    FOLDER.mkdir(exist_ok=True)
    restive = Path(sys.executable).parent / "restive"
    figure = FOLDER / "two-state.png"
    subprocess.run([restive, "simulate", *FIGURE.split(), "--figure", figure], check=True, capture_output=True)
    shrink(figure)
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/demo.db"
        subprocess.run(
            [restive, "desk", "demo", "--name", "pharmacists", "--store", store], check=True, capture_output=True
        )
        command = [restive, "serve", "--store", store, "--port", "0"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as server:
            try:
                assert server.stderr is not None
                found = next(filter(None, (re.search(r"http://[\w.:]+", line) for line in server.stderr)))
                take_pictures(found[0])
            finally:
                server.terminate()


def shrink(file: Path) -> None:
    """Reduce a picture to 64 colours."""
    Image.open(file).convert("RGB").quantize(64).save(file, optimize=True)


def take_pictures(address: str) -> None:
    """Take the first screen of every page in every size."""
    browser_path = os.environ.get("RESTIVE_BROWSER", "/usr/bin/chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for size, (width, height) in SIZES.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
            for name, path in PAGES.items():
                page.goto(address + path)
                file = FOLDER / f"{name}-{size}.png"
                page.screenshot(path=file)
                shrink(file)
        browser.close()


if __name__ == "__main__":
    main()
