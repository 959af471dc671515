"""The status of a program: rounds, people, lift, shadow policy, the effect in each state, and what to do next.

It is the answer of the API (`restive.api.status`); `restive.desk.output` prints it and `restive.desk.plots` draws it.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal, cast

import numpy as np

from restive.api.status import (
    DriftAlarm,
    NextStep,
    PeopleCounts,
    Progress,
    RewardRange,
    StateEffect,
    Status,
    StatusRound,
    WaitingRound,
)
from restive.api.types import DueRound, ProgramSummary
from restive.desk.agents import RewardTotals, RoundTotals
from restive.desk.config import TEMPLATES, Config, Words
from restive.desk.effects import FEW_ACTIONS, MIN_PEOPLE, UNKNOWN_EFFECT, Effect, estimate_effects
from restive.desk.events import FREE
from restive.desk.explanations import capitalize, count_people, reward_noun, show_estimate
from restive.desk.lift import Lift, LiftCurve, Shadow, compare_policies, lift, lift_by_round, sum_people
from restive.desk.program import Program
from restive.desk.projection import Projection
from restive.desk.schedule import make_calendar, mention_round
from restive.errors import InputError
from restive.formats import finite_or_none, show_percent
from restive.logs.drift import Alarm, find_alarms
from restive.version import __version__

MAX_SHADOW_ROUNDS = 200  # a shadow policy is compared over the last rounds only, so that the log need not be read whole
MAX_DRIFT_ROUNDS = 500  # the last ones, in which changes are looked for
SHOWN_ROUNDS = 20  # for which a change is shown after it was found
MAX_MISSING = 0.05  # the share of outcomes that may be missing before the lift comes with a caution


def get_status(program: Program) -> Status:
    """The status of a program."""
    projection, shadow = program.projection, program.config.shadow
    return {
        **get_progress(program),
        "curve": as_plain(_lift_curve(projection.rounds)),
        "shadow": as_plain(compare_shadow(program) if shadow else None),
        "effects": find_effects(projection) if projection.rounds else [],
        "effects_of": len(projection.tallies.people) if projection.tallies.stride > 1 else None,
        "reward_range": _describe_range(projection),
    }


def get_progress(program: Program) -> Progress:
    """What a program has done so far, its lift, and what to do next; no round is read for it."""
    projection = program.projection
    config, agents = projection.config, projection.agents
    people, rounds = _count_people(program), [_describe_round(totals, config) for totals in projection.rounds]
    waiting: list[WaitingRound] = [
        {"round": totals.round, "label": totals.label, "missing": totals.waiting}
        for totals in projection.rounds
        if totals.waiting
    ]
    actions = sum(row["done"] + row["unlisted"] for row in rounds)
    effect = measure_lift(projection) if agents.control.any() else None
    weekly, due = config.states_are_outcomes and bool(config.rewards), find_due(program)
    return {
        "name": program.name,
        "title": find_title(config),
        "policy": config.policy,
        "seed": config.seed,
        "people": people,
        "words": config.as_json()["words"],
        "rounds": rounds,
        "waiting": waiting,
        "lift": as_plain(effect),
        "caution": _caution(projection.rounds),
        "shadow_policy": config.shadow,
        "drift": find_drift(projection.rounds, config),
        "horizon": config.horizon,
        "timezone": config.timezone,
        "due": due,
        "steps": next_steps(
            config.words, people, waiting, len(rounds), config.horizon, weekly, bool(config.control_until), due
        ),
        "version": __version__,
        "actions": actions,
        "assumed": sum(totals.assumed for totals in projection.rounds),
        "budget_used": _share_of_budget(rounds),
        "cost_unit": config.cost_unit,
        "extra_per_action": as_plain(effect.per_action(actions)) if effect else None,
        "total": describe_total(effect, actions, config.words) if effect else "",
    }


def _share_of_budget(rounds: Sequence[StatusRound]) -> float | None:
    """The share of the budget that was used; the last round counts once it is known what was done on its list."""
    marked = bool(rounds) and rounds[-1]["done"] + rounds[-1]["failed"] >= rounds[-1]["advised"]
    over = rounds if marked or not rounds or rounds[-1]["outcomes"] == rounds[-1]["present"] else rounds[:-1]
    budget = sum(row["budget"] for row in over)
    used = sum(row["done"] if row["spent"] is None else row["spent"] for row in over)
    return used / budget if budget else None


def find_due(program: Program) -> DueRound | None:
    """The next round of a program and when it is due."""
    projection, horizon = program.projection, program.config.horizon
    if program.archived or (horizon is not None and len(projection.rounds) >= horizon):
        return None
    return projection.schedule.describe(projection.next_round, program.store.clock(), projection.last_due)


def measure_lift(projection: Projection) -> Lift:
    """The lift of a program, from the sums of its agents in rounds with a control group."""
    agents, config = projection.agents, projection.config
    found = lift(sum_people(agents), config.words, int(agents.unlisted.sum()))
    if config.control_until is None or len(projection.rounds) <= config.control_until:
        return found
    last = projection.totals(config.control_until).mention
    until = f"Measured up to {last}; after that the control group joined the program."
    return found._replace(explanation=" ".join(filter(None, [found.explanation, until])))


def summarize(program: Program) -> ProgramSummary:
    """A program in a list of programs; if it cannot be read, `error` says why."""
    summary: ProgramSummary = {
        "name": program.name,
        "created": program.created,
        "archived": program.archived,
        "people": None,
        "rounds": None,
        "events": None,
        "waiting": None,
        "due": None,
        "policy": None,
        "template": None,
        "title": None,
        "error": None,
    }
    try:
        projection = program.projection
    except InputError as error:
        return {**summary, "error": error.message}
    except Exception as error:  # one program that cannot be read must not hide the others
        return {**summary, "error": f"The program cannot be read ({type(error).__name__})."}
    return {
        **summary,
        "people": int(projection.agents.active.sum()),
        "rounds": len(projection.rounds),
        "events": projection.length,
        "waiting": sum(totals.waiting for totals in projection.rounds),
        "due": find_due(program),
        "policy": projection.config.policy,
        "template": projection.config.template,
        "title": find_title(projection.config),
    }


def next_steps(
    words: Words,
    people: PeopleCounts,
    waiting: Sequence[WaitingRound],
    decided: int,
    horizon: int | None = None,
    states_are_outcomes: bool = False,
    waiting_list: bool = False,
    due: DueRound | None = None,
) -> list[NextStep]:
    """What the team can do now, the most urgent first; decided is the number of rounds so far.

    If states are outcomes, only the last round waits: the states of the next one complete it. The control group of a
    waiting list joins the program later, so it may be empty.
    """
    last = max([decided, *(each["round"] for each in waiting)])
    over = horizon is not None and last >= horizon
    wanted = [each for each in waiting if each["round"] == last] if states_are_outcomes else waiting
    steps = [
        _step(
            f"{capitalize(mention_round(each['label'], each['round']))} waits for the outcomes of "
            f"{count_people(each['missing'], words)}.",
            "learn",
            each["round"],
        )
        for each in sorted(wanted, key=lambda each: each["round"])
    ]
    if not people["active"] and not decided:
        first = "" if due is None else f" {due['sentence']}"
        steps.append(_step(f"Nobody has joined yet; everybody with a state in the first round joins.{first}", "decide"))
    elif over:
        steps.append(_step(f"All {horizon} rounds are decided; the program ends with the last outcomes."))
    elif states_are_outcomes and wanted:
        before = mention_round(wanted[0]["label"], last)
        start = (
            "The next list can be decided from new states, which" if due is None else f"{due['sentence']} Its states"
        )
        steps = [
            _step(f"{start} are also the results of {before}.", "decide"),
            _step(f"Everybody on the list of {before} counts as done, unless you report otherwise.", "learn", last),
        ]
    else:
        anytime = "The next list can be decided as soon as its states are known."
        steps.append(_step(anytime if due is None else due["sentence"], "decide"))
    if decided and not (people["control"] or waiting_list):
        steps.append(_step("There is no control group, so the effect of the program cannot be measured."))
    return steps


def _step(message: str, verb: str | None = None, round_: int | None = None) -> NextStep:
    return {"message": message, "verb": verb, "round": round_}


def find_effects(projection: Projection) -> list[StateEffect]:
    """What the actions done in each state added to the reward of their round."""
    tallies, config = projection.tallies, projection.config
    low, high = find_reward_range(projection) or (math.nan, math.nan)
    found = estimate_effects(tallies, config.rewards)
    estimates = zip(config.states, *tallies.moves.sum(axis=-1).tolist(), found, strict=True)
    return [
        judge_effect(state, waited, acted, effect, high - low, config.words)
        for state, waited, acted, effect in estimates
    ]


def judge_effect(state: str, waited: int, acted: int, effect: Effect, widest: float, words: Words) -> StateEffect:
    """An effect as it is shown: not known, thin or known; `widest` is the width of an interval that says nothing."""
    fewest, knowledge, note = min((acted, "after"), (waited, "without")), "known", ""
    if min(effect.acted_people, effect.waited_people) < MIN_PEOPLE:
        side = "with" if effect.acted_people <= effect.waited_people else "without"
        number = min(effect.acted_people, effect.waited_people)
        knowledge, note = "not known", f"only {count_people(number, words)} seen in this state {side} {words.action}"
    elif not effect.high - effect.low < widest:
        knowledge, note = "not known", "the interval is too wide to say anything"
    elif fewest[0] < FEW_ACTIONS:
        knowledge, note = "thin", f"only {fewest[0]:,} outcomes {fewest[1]} {words.action}"
    shown = UNKNOWN_EFFECT if knowledge == "not known" else effect
    return {
        "state": state,
        "acted": acted,
        "waited": waited,
        "mean": finite_or_none(shown.mean),
        "low": finite_or_none(shown.low),
        "high": finite_or_none(shown.high),
        "spread": finite_or_none(shown.spread),
        "knowledge": cast('Literal["known", "thin", "not known"]', knowledge),
        "note": note,
    }


def find_reward_range(projection: Projection) -> tuple[float, float] | None:
    """The smallest and the largest reward of the config or, if rewards are reported, so far; None before the first."""
    rewards = projection.config.rewards or projection.tallies.reward_range.tolist()
    return None if math.isnan(rewards[0]) else (float(min(rewards)), float(max(rewards)))


def _describe_range(projection: Projection) -> RewardRange | None:
    found = find_reward_range(projection)
    return None if found is None else {"low": found[0], "high": found[1], "observed": not projection.config.rewards}


def describe_total(effect: Lift, actions: int, words: Words) -> str:
    """The total gain of a program in a sentence: a range as long as it may be 0; empty if it is not known."""
    total = show_estimate(effect.extra, effect.extra_low, effect.extra_high)
    if total is None:
        return ""
    unit = reward_noun(words)
    if effect.extra_low <= 0 <= effect.extra_high:
        return f"Too early to say what that is in total: between {total[1]} and {total[2]} {unit}."
    each = show_estimate(*effect.per_action(actions))
    more = f"; {each[0]} ({each[1]} to {each[2]}) for each time someone {words.acted}" if each else ""
    return f"In total that is {total[0]} {unit} (95% interval from {total[1]} to {total[2]}){more}."


def find_drift(rounds: Sequence[RoundTotals], config: Config) -> list[DriftAlarm]:
    """Changes of how people move, found in the last rounds by CUSUM (`restive.logs.drift`)."""
    seen = [totals for totals in rounds if totals.moves][-MAX_DRIFT_ROUNDS:]
    states = config.states
    moves = np.array([totals.moves for totals in seen], np.int64).reshape(-1, 2, len(states), len(states))
    return [
        {
            "action": None if alarm.action is None else bool(alarm.action),
            "state": None if alarm.state is None else states[alarm.state],
            "since": seen[alarm.since].round,
            "at": seen[alarm.since].at,
            "found": seen[alarm.found].round,
            "before": alarm.before.tolist(),
            "after": alarm.after.tolist(),
            "sentence": _say_drift(alarm, seen[alarm.since], config),
            "advice": _advise_drift(alarm, config),
        }
        for alarm in find_alarms(moves)
        if alarm.found >= len(seen) - SHOWN_ROUNDS
    ]


def _say_drift(alarm: Alarm, since: RoundTotals, config: Config) -> str:
    words, when = config.words, f"Since {since.mention}"
    if alarm.state is None:
        return f"{when}, {words.people} move differently without {words.action}; no single state stands out."
    moved = [
        f"{state} {show_percent(float(after))} instead of {show_percent(float(before))}"
        for state, before, after in zip(config.states, alarm.before, alarm.after, strict=True)
        if show_percent(float(before)) != show_percent(float(after))
    ]
    how = f"{'with' if alarm.action else 'without'} {words.action}"
    return f"{when}, {words.people} in {config.states[alarm.state]!r} move differently {how}: {', '.join(moved)}."


def _advise_drift(alarm: Alarm, config: Config) -> str:
    check = "Check that states and actions are still recorded as before, and what else changed then."
    if alarm.action and config.policy != "random":
        return (
            f"This may only mean that the policy selects others than before, which cannot be told apart here. {check}"
        )
    return check


def compare_shadow(program: Program) -> Shadow | None:
    """The shadow policy against the policy, over everybody who could be chosen and has an outcome."""
    parts = []
    for totals in program.rounds[-MAX_SHADOW_ROUNDS:]:
        if totals.outcomes:
            found = program.cache.get_round(totals.round)
            if "shadow_probability" in found.choice:
                rows = (found.choice["exclusion"] == FREE) & (found.after >= 0)
                names = ("chosen", "probability", "shadow_probability", "shadow_chosen")
                parts.append([found.reward[rows], *(found.choice[name][rows] for name in names), found.number[rows]])
    if not parts:
        return None
    reward, chosen, probability, shadow_probability, shadow_chosen, agent = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    return compare_policies(reward, chosen, probability, shadow_probability, agent, shadow_chosen, program.config.words)


def find_title(config: Config) -> str:
    """The title of the program, or of its template, unless the program has its own states or words."""
    if config.title:
        return config.title
    template = TEMPLATES.get(config.template or "")
    if template is None or list(config.states) != template["states"]:
        return ""
    words = {name: word for name, word in config.as_json()["words"].items() if name != "every"}  # follows the rhythm
    return template["title"] if words.items() <= template.items() else ""


def _caution(rounds: Sequence[RoundTotals]) -> str:
    """Why the lift is not reliable yet: people whose outcomes are late may differ from the others."""
    decided = [totals for totals in rounds if totals.outcomes]
    missing, expected = sum(totals.waiting for totals in decided), sum(totals.present for totals in decided)
    if missing <= MAX_MISSING * expected:
        return ""
    known = f"{expected - missing:,} of {expected:,} outcomes are known"
    return f"Only {known}. If people on the list are reported sooner than others, the lift is not reliable yet."


def _count_people(program: Program) -> PeopleCounts:
    projection = program.projection
    agents = projection.agents
    before = projection.rounds[-2].agents if len(projection.rounds) > 1 else agents.count
    return {
        "active": int(agents.active.sum()),
        "left": int((~agents.active & ~agents.erased & ~agents.expected).sum()),
        "erased": int(agents.erased.sum()),
        "new": int(agents.active[before:].sum()),
        "control": int((agents.control & agents.active).sum()) * projection.config.has_control(projection.next_round),
    }


def _describe_round(totals: RoundTotals, config: Config) -> StatusRound:
    costs = bool(config.cost_unit)
    return {
        "round": totals.round,
        "label": totals.label,
        "due": totals.due,
        "at": totals.at,
        "present": totals.present,
        "budget": 0 if totals.cancelled else totals.budget,
        "advised": 0 if totals.cancelled else totals.advised,
        "planned": None if not costs else 0.0 if totals.cancelled else totals.planned,
        "spent": totals.spent if costs else None,
        "done": totals.done - totals.unlisted,
        "failed": totals.failed,
        "outcomes": totals.outcomes,
        "unlisted": totals.unlisted,
        "explored": totals.explored,
        "reward_mean": _mean(totals.treated),
        "control_mean": _mean(totals.control),
    }


def _mean(side: RewardTotals) -> float | None:
    return side.total / side.seen if side.seen else None


def _lift_curve(rounds: Sequence[RoundTotals]) -> LiftCurve | None:
    if not any(totals.outcomes for totals in rounds):
        return None
    sides = [[totals.treated for totals in rounds], [totals.control for totals in rounds]]
    sums, squares, counts = (
        np.array([[getattr(each, name) for each in side] for side in sides]) for name in ("total", "square", "seen")
    )
    return lift_by_round(sums, squares, counts)


def as_plain(value: Any) -> Any:
    """Named tuples as dictionaries, arrays as lists, and null for numbers that are not finite."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: as_plain(part) for name, part in value._asdict().items()}
    if isinstance(value, np.ndarray | np.generic):
        return as_plain(value.tolist())
    if isinstance(value, list | tuple):
        return [as_plain(part) for part in value]
    return finite_or_none(value) if isinstance(value, float) else value


def write_calendar(program: Program) -> str:
    """The due dates of a program as an iCalendar file."""
    config, due = program.config, find_due(program)
    left = None if config.horizon is None else config.horizon - len(program.rounds)
    return make_calendar(program.name, config.title or program.name, due, program.projection.schedule, left)
