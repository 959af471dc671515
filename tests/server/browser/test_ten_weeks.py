"""A program lead runs a program from her weekly export alone, on a phone and on a computer.

The people are simulated, with known transition probabilities. Everything is done on pages, from the form of the new
program to the lift; the export has columns of its own, semicolons, Windows-1252, phone numbers in several spellings as ids,
and a number as state. Numbers on the pages are compared with what the script knows to be true. Beside it, programs of the same
people with random lists are simulated without a browser.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from restive.desk import Desk
from restive.desk.status import measure_lift
from restive.formats import show_number
from restive.problems import make_problems
from restive.types import Floats, Ints
from restive.world import World
from server.browser.chromium import PHONE
from server.browser.conftest import Live, Windows
from server.browser.shop import at

SMALL = PHONE | {"viewport": {"width": 375, "height": 740}}
SPELLINGS = ("+91 98200-{:05}", "0091 98200 {:05}", "098200{:05}", "+9198200{:05}")
SECONDS = (4, 45, 120)  # heard, in each state; the cut points are 30 and 90
NOT_REACHED = 2  # of the people on a list


@dataclass
class Mothers:
    """Simulated people; each week some are called, and their states move by known probabilities."""

    number: int
    budget: int
    seed: int = 5
    week: int = 0
    done: list[set[int]] = field(default_factory=list)  # in each week
    rewards: list[Floats] = field(default_factory=list)  # of the states that followed

    def __post_init__(self) -> None:
        problem = make_problems("maternal-health-v1", agents=self.number, budget=self.budget, seed=self.seed)[0]
        self.world, self.reward = World(problem, seed=self.seed), problem.reward[0]
        self.state: Ints = self.world.first_states()[0]
        self.gain: Floats = (problem.transition[:, 1] - problem.transition[:, 0]) @ self.reward  # by person and state

    def export(self, folder: Path) -> Path:
        """The table of the week, as another system writes it."""
        lines = ["Téléphone;Prénom;Quartier;Secondes écoutées"]
        for n, state in enumerate(self.state.tolist()):
            phone = SPELLINGS[(n + self.week) % len(SPELLINGS)].format(n)
            lines.append(f"{phone};Zoé {n};Colonia {n % 7};{SECONDS[state] + (n * 7 + self.week) % 25}")
        path = folder / f"export-{self.week}.csv"
        path.write_bytes("\r\n".join(lines).encode("cp1252"))
        return path

    def advance(self, called: set[int]) -> None:
        """A week passes in which these people got a call."""
        acted = np.isin(np.arange(self.number), list(called)).astype(np.int64)
        after = self.world.advance(self.state[None], acted[None], self.world.draws(self.week)).after[0]
        self.done.append(called)
        self.state, self.week = after, self.week + 1
        self.rewards.append(self.reward[after])


def create_by_form(page: Page, name: str, budget: int) -> None:
    """Create the program from the template for calls to mothers."""
    page.goto("/new")
    page.get_by_role("link", name="Maternal and community health calls").click()
    page.get_by_label("Name of the program").fill(name.replace("-", " "))
    page.get_by_label("Budget", exact=True).fill(str(budget))
    page.get_by_role("button", name="Create program").click()
    page.wait_for_url(f"**{at(name, 'states')}#main")


def upload(page: Page, table: Path, first: bool) -> None:
    """Check the table of the week, say once how it is read, and decide."""
    page.get_by_label("File", exact=True).set_input_files(table)
    page.get_by_role("button", name="Check", exact=True).click()
    if first:
        page.get_by_label(re.compile("^Id")).select_option("Téléphone")
        page.get_by_label(re.compile("^Group")).select_option("None")
        page.get_by_label("Cut point 1").fill("30")
        page.get_by_label("Cut point 2").fill("90")
        page.get_by_label("A higher number is").select_option("better")
        page.get_by_label("Calling code of their country").fill("91")
        page.get_by_role("button", name="Check with these columns").click()
    expect(page.get_by_text("The table is valid")).to_be_visible()


def read_list(page: Page) -> list[int]:
    """The people on the list of the page, by their number."""
    listed = page.locator("tr:not(.reserve) td.first a.id").all_inner_texts()
    return [int(phone[-5:]) for phone in listed]


def mark_not_reached(page: Page, people: list[int]) -> None:
    """Mark on the list that some were not reached."""
    for person in people:
        card = page.get_by_role("group", name=f"+9198200{person:05}")
        card.get_by_text("No, or not reached", exact=True).click()
        expect(card).to_contain_text("saved")


def play_week(page: Page, mothers: Mothers, name: str, folder: Path) -> Floats:
    """One week: one table, one list, some marks; the true gain by each call on the list, and by one at random."""
    page.get_by_role("navigation", name=name).get_by_role("link", name="Home").click()
    page.get_by_role("main").get_by_role("link", name="Decide the round").click()
    upload(page, mothers.export(folder), first=mothers.week == 0)
    if mothers.week:
        reported = NOT_REACHED * (mothers.week > 0)
        results = page.locator("#preview").get_by_text(f"for {mothers.number} of {mothers.number} mothers")
        expect(results).to_contain_text(
            f"{mothers.budget - reported} not marked, who count as done, {reported} reported, 0 without a new state"
        )
    page.get_by_role("button", name=re.compile("^Decide")).click()
    page.wait_for_url("**/list#main")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{mothers.budget} mothers to call")
    listed = read_list(page)
    assert len(set(listed)) == mothers.budget
    mark_not_reached(page, listed[:NOT_REACHED])
    expect(page.get_by_text(f"{NOT_REACHED} of {mothers.budget} marked")).to_be_visible()
    gain = mothers.gain[np.arange(mothers.number), mothers.state]
    mothers.advance(set(listed[NOT_REACHED:]))
    return np.array([gain[listed].mean(), gain.mean()])


def check_numbers(page: Page, mothers: Mothers, live: Live, name: str) -> None:
    """The numbers of Home, Results and Rounds agree with each other and with the truth."""
    agents = live.desk.program(name).projection.agents
    control = {int(phone[-5:]) for phone in live.desk.program(name).names.call(np.flatnonzero(agents.control))}
    sections = page.get_by_role("navigation", name=name)
    sections.get_by_role("link", name="Home").click()
    home = page.get_by_role("main").inner_text()
    known = mothers.week - 1  # what came of the last list is in the next table
    assert f"{mothers.number} mothers, {mothers.week} rounds" in home
    assert f"{mothers.week * (mothers.budget - NOT_REACHED) + NOT_REACHED - mothers.budget} done" in home
    sections.get_by_role("link", name="Results").click()
    results = page.get_by_role("main").inner_text()
    works = page.locator("section", has=page.get_by_role("heading", name="Does it work?")).inner_text()
    assert "95% interval" in works
    lift = measure_lift(live.desk.program(name).projection)
    assert lift.sentence in home
    assert lift.sentence in results
    inside = np.array([n not in control for n in range(mothers.number)])
    rewards = np.array(mothers.rewards[:known])
    assert (lift.treated_mean, lift.control_mean) == pytest.approx(
        (rewards[:, inside].mean(), rewards[:, ~inside].mean())
    )
    page.goto(f"{live.place}{at(name, 'rounds')}")
    for people in (inside, ~inside):
        for week in range(known):
            row = page.get_by_role("row").filter(has_text=f"round {week + 1}, decided")
            expect(row).to_contain_text(show_number(float(rewards[week, people].mean())))
    assert not control & set().union(*mothers.done)


def play(live: Live, windows: Windows, folder: Path, name: str, weeks: int, mothers: Mothers, **screen: Any) -> Floats:
    """Play the lead for some weeks; the mean true gain of listed people and of all, week by week."""
    page = windows(live, refused=[422], **screen).tab()
    create_by_form(page, name, mothers.budget)
    gains = np.array([play_week(page, mothers, name, folder) for _ in range(weeks)])
    check_numbers(page, mothers, live, name)
    return gains


def test_a_lead_runs_three_weeks_on_a_phone_from_one_export_a_week(
    open_server: Live, windows: Windows, tmp_path: Path
) -> None:
    play(open_server, windows, tmp_path, "appels-du-lundi", 3, Mothers(60, 8), **SMALL)


@pytest.mark.soak
@pytest.mark.parametrize("screen", ["phone", "desktop"])
def test_ten_weeks_of_exports_show_a_lift_and_lists_that_are_better_than_random(
    open_server: Live, windows: Windows, tmp_path: Path, screen: str
) -> None:
    mothers = Mothers(300, 20)
    shape = SMALL if screen == "phone" else {"viewport": {"width": 1280, "height": 900}}
    gains = play(open_server, windows, tmp_path, f"ten-weeks-on-a-{screen}", 10, mothers, **shape)
    ahead = gains[1:, 0] - gains[1:, 1]  # nothing is known in the first week
    assert ahead.mean() > 2 * ahead.std(ddof=1) / np.sqrt(ahead.size), gains


def simulate(folder: Path, policy: str, seed: int) -> Floats:
    """Ten weeks of lists by a policy: the true gain expected from its calls, and all rewards that followed."""
    mothers, gains = Mothers(300, 20, seed), 0.0
    with Desk(folder / f"{policy}-{seed}.db") as desk:
        program = desk.create("calls", template="maternal-health", policy=policy, budget=mothers.budget, seed=seed)
        for _ in range(10):
            states = [{"agent": str(n), "state": state} for n, state in enumerate(mothers.state.tolist())]
            listed = [int(agent) for agent in program.decide(states, again=True).chosen]
            gains += float(mothers.gain[listed, mothers.state[listed]].sum())
            mothers.advance(set(listed))
    return np.array([gains, np.sum(mothers.rewards)])


@pytest.mark.soak
def test_the_learner_is_ahead_of_random_lists_for_the_same_people(tmp_path: Path) -> None:
    """Twelve programs, each with both kinds of lists and the same random numbers; 95% intervals of both differences."""
    ahead = np.array(
        [
            np.subtract(*(simulate(tmp_path, policy, seed) for policy in ("lagrange", "random")))
            for seed in range(200, 212)
        ]
    )
    half_width = 2.201 * ahead.std(axis=0, ddof=1) / np.sqrt(len(ahead))  # of Student's t with 11 degrees of freedom
    print(f"expected gain and rewards of ten weeks, ahead of random lists: {ahead.mean(axis=0)} ± {half_width}")
    assert (ahead.mean(axis=0) > half_width).all()
