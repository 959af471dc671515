"""The figures of "How it works", computed from simulated people: part of `make pictures`."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from restive import History, Problem, World, fit, make_policy, make_problems, simulate
from restive.desk import Desk
from restive.desk.demo import run_demo
from restive.desk.status import get_status
from restive.logs.generate import generate_history
from restive.policies.base import Learner
from restive.simulation import Simulation
from restive.solvers.whittle import whittle_indices

GREEN, RED, GREY, BLUE = "#0b6b60", "#b3402a", "#8a8a8a", "#2a5db0"
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "restive", "font.family": "sans-serif", "font.size": 10,
         "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10, "axes.titlelocation": "left"}  # fmt: skip


def draw_restless() -> Figure:
    """Four people over 20 weeks, who move by themselves."""
    problem = make_problems("pharmacy-v1", instances=1, agents=60, budget=6, seed=3)[0]
    simulation = Simulation(World(problem, seed=3), make_policy("random"))
    states, actions = [], []
    for _ in range(20):
        before, action, _ = simulation.take_step()
        states.append(before[0])
        actions.append(action[0])
    path, acted = np.array(states), np.array(actions)
    people = np.argsort(-acted.sum(axis=0) - 0.1 * np.abs(np.diff(path, axis=0)).sum(axis=0), kind="stable")[:4]
    figure = Figure((7.2, 3.6), layout="constrained")
    for place, (axes, person) in enumerate(
        zip(figure.subplots(2, 2, sharex=True, sharey=True).flat, people, strict=True)
    ):
        axes.step(np.arange(1, 21), path[:, person], where="mid", color=BLUE)
        rounds = np.flatnonzero(acted[:, person])
        axes.plot(rounds + 1, path[rounds, person], "o", color=RED, markersize=6)
        axes.set_title(f"person {place + 1}")
        axes.set_yticks(range(4), problem.states)
    figure.supxlabel("week; a red dot is a coupon", size=10)
    return figure


def draw_cutoff() -> Figure:
    """The benefit of the action for each of 40 people, sorted, and the budget's cutoff: the price."""
    problem = make_problems("pharmacy-v1", instances=1, agents=40, budget=8, seed=5)[0]
    index = whittle_indices(problem.transition, problem.reward, discount=0.95)
    state = World(problem, seed=5).first_states()[0]
    here = np.sort(index.value[np.arange(40), state])[::-1]
    price = (here[7] + here[8]) / 2
    figure = Figure((7.2, 2.7), layout="constrained")
    axes = figure.subplots()
    axes.bar(np.arange(40), here, color=[GREEN] * 8 + [GREY] * 32)
    axes.axhline(price, color=RED, linestyle="--")
    axes.text(39.5, price, "price", color=RED, ha="right", va="bottom")
    axes.set_xticks([])
    axes.set_xlabel("40 people, sorted; the 8 in green are on the list")
    axes.set_ylabel("worth of acting")
    return figure


@dataclass(frozen=True)
class NeediestFirst(Learner[tuple[()]]):
    """Act on those in the worst states."""

    def start(self, shape: Any) -> tuple[()]:
        """Nothing to remember."""
        return ()

    def rank(self, belief: tuple[()], state: Any, draws: Any) -> Any:
        """The worse the state, the earlier."""
        return -state.astype(float)


def draw_neediest() -> Figure:
    """The reward of four ways of choosing, on the same people."""
    problems = make_problems("e-commerce-v1", instances=10, agents=200, budget=20, seed=7)
    played: dict[str, Any] = {}
    for name, policy in (("at random", "random"), ("neediest first", NeediestFirst()), ("lagrange, which learns", "lagrange"),
                         ("whittle-oracle, which knows", "whittle-oracle")):  # fmt: skip
        played[name] = simulate(problems, policy, horizon=60, runs=4, seed=7).mean_reward()
    figure = Figure((7.2, 2.2), layout="constrained")
    axes = figure.subplots()
    for place, (name, band) in enumerate(reversed(played.items())):
        axes.plot([band.low, band.high], [place, place], color=BLUE, linewidth=2)
        axes.plot(band.mean, place, "o", color=RED if name == "neediest first" else BLUE)
    axes.set_yticks(range(4), [*reversed(played)])
    axes.set_xlabel("reward per round of 200 customers, with 20 discounts")
    return figure


def draw_price() -> Figure:
    """The advantage of acting over waiting, by the price of an action, in each state of one person."""
    problem = make_problems("pharmacy-v1", instances=1, agents=40, budget=8, seed=5)[0]
    transition, reward, discount = problem.transition[0], problem.reward[0], 0.95
    index = whittle_indices(transition[None], reward[None], discount).value[0]
    prices = np.linspace(-0.5, 5, 56)
    advantage = np.array([_advantage(transition, reward, discount, price) for price in prices])
    figure = Figure((7.2, 3.0), layout="constrained")
    axes = figure.subplots()
    axes.axhline(0, color="black", linewidth=0.8)
    for state, (name, colour) in enumerate(zip(problem.states, (RED, BLUE, GREEN, GREY), strict=True)):
        axes.plot(prices, advantage[:, state], color=colour, label=name)
        axes.plot(index[state], 0, "o", color=colour)
    axes.set_xlabel("price of an action; a dot is the Whittle index of the state")
    axes.set_ylabel("acting − waiting")
    axes.legend(frameon=False)
    return figure


def _advantage(transition: Any, reward: Any, discount: float, price: float) -> Any:
    """Q(s, act) − Q(s, wait) of one person if an action costs so much, by value iteration."""
    value = np.zeros(len(reward))
    for _ in range(400):
        act, wait = (discount * transition[a] @ value for a in (1, 0))
        value = reward + np.maximum(act - price, wait)
    return act - price - wait


def draw_pooling() -> Figure:
    """The error of what is known about each person, from its own moves alone and with those of all others."""
    people = make_problems("few-types-v1", instances=1, agents=300)[0]
    rounds, own, pooled = (2, 4, 8, 16, 32), [], []
    for number in rounds:
        history = generate_history(people, rounds=number, seed=1)
        own.append(_error(_own_rows(history), people))
        pooled.append(_error(fit(history, held_out=False, half_life=None).posterior_mean(), people))
    figure = Figure((7.2, 2.7), layout="constrained")
    axes = figure.subplots()
    axes.plot(rounds, own, "o-", color=GREY, label="from a person's own moves")
    axes.plot(rounds, pooled, "o-", color=GREEN, label="with those of all others")
    axes.set_xscale("log", base=2)
    axes.set_xticks(rounds, list(map(str, rounds)))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("rounds seen of 300 people")
    axes.set_ylabel("mean error of\na probability")
    axes.legend(frameon=False)
    return figure


def _own_rows(history: History) -> Any:
    counts = history.counts + 0.5
    return counts / counts.sum(axis=-1, keepdims=True)


def _error(rows: Any, people: Problem) -> float:
    return float(np.abs(rows - people.transition).mean())


def draw_lift() -> Figure:
    """The mean reward of program and control group in the demo program, round by round."""
    with TemporaryDirectory() as folder, Desk(f"{folder}/demo.db") as desk:
        rounds = get_status(run_demo(desk, "pharmacists", agents=200, rounds=30))["rounds"]
    known = [each for each in rounds if each["reward_mean"] is not None and each["control_mean"] is not None]
    week = [each["round"] for each in known]
    figure = Figure((7.2, 2.7), layout="constrained")
    axes = figure.subplots()
    program, control = ([each[key] for each in known] for key in ("reward_mean", "control_mean"))
    axes.plot(week, program, color=GREEN, label="in the program")
    axes.plot(week, control, color=GREY, linestyle="--", label="control group")
    axes.fill_between(week, control, program, color=GREEN, alpha=0.12)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("week; the shaded area is the lift")
    axes.set_ylabel("orders a week\nper pharmacist")
    axes.legend(frameon=False)
    return figure


FIGURES = {"restless": draw_restless, "cutoff": draw_cutoff, "neediest": draw_neediest, "price": draw_price, "pooling": draw_pooling,
           "lift": draw_lift}  # fmt: skip


def main(folder: Path) -> None:
    """Write every figure as a small SVG."""
    with mpl.rc_context(STYLE):
        for name, draw in FIGURES.items():
            draw().savefig(folder / f"how-{name}.svg", metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    main(Path(__file__).parent / "pictures")
