"""A shop with simulated customers: tables of states and outcomes, and programs with some rounds."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Locator, Page

from restive.desk import Desk
from restive.desk.program import Program

CUSTOMERS, STATES = 40, ("lapsed", "browsing", "buying")
DECIDE = re.compile("^Decide .* now$")  # the button, which names the round


def name_customer(number: int) -> str:
    return f"C-{number:03}"


def table_of_states(month: int = 1, customers: int = CUSTOMERS) -> str:
    """The states of a month, as CSV."""
    rows = [f"{name_customer(n)},{STATES[(n * 7 + month * (n % 3)) % 3]}" for n in range(customers)]
    return "\n".join(["agent,state", *rows, ""])


def table_of_outcomes(program: Program) -> str:
    """The outcomes of all rounds of a program: customers with a discount buy, the states of others vary."""
    lines = ["agent,round,done,next_state"]
    for round_ in range(1, len(program.rounds) + 1):
        recommendation = program.recommendation(round_)
        for place, agent in enumerate(recommendation.names.call(recommendation.found.number)):
            got = agent in recommendation.chosen
            state = "buying" if got else STATES[(place + round_) % 3]
            lines.append(f"{agent},{round_},{'yes' if got else 'no'},{state}")
    return "\n".join([*lines, ""])


def make_shop(desk: Desk, name: str, months: int = 0) -> Program:
    """A program with `months` decided rounds, without outcomes."""
    settings: dict[str, Any] = {"budget": 5, "cool_down": 0, "control": 0.2, "shadow": "egt", "seed": 3}
    program = desk.create(name, template="e-commerce", states_are_outcomes=False, **settings)
    for month in range(months):
        program.decide(_rows(table_of_states(month)))
    return program


def _rows(table: str) -> list[dict[str, str]]:
    names, *rows = (line.split(",") for line in table.split())
    return [dict(zip(names, row, strict=True)) for row in rows]


def save(folder: Path, table: str, name: str = "table.csv") -> Path:
    """Save a table as a file."""
    place = folder / name
    place.write_text(table, encoding="utf-8")
    return place


def at(program: str, part: str) -> str:
    """The URL of a page of a program."""
    return f"/programs/{quote(program, safe='')}/{part}"


def check(page: Page, table: str | Path) -> Locator:
    """Check a table, from a file or pasted; the result on the page."""
    if isinstance(table, Path):
        page.get_by_label("File", exact=True).set_input_files(table)
    else:
        page.get_by_text("Or paste rows from a spreadsheet").click()
        page.get_by_label("Rows, with the column names").fill(table)
    page.get_by_role("button", name="Check", exact=True).click()
    found = page.locator("#preview section").last
    found.wait_for()
    return found
