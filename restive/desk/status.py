"""The status of a program: rounds, people, lift, shadow policy, what was learned, and what to do next.

`restive.desk.output` prints it, `restive.desk.plots` draws it, `as_json` is its form in the API. Unknown numbers are NaN
here and null in JSON. Times are UTC in ISO 8601.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from restive.api.status import Status as StatusAnswer
from restive.api.types import ProgramSummary
from restive.desk.config import WORDS, Config, Words
from restive.desk.explanations import count_people
from restive.desk.lift import Lift, LiftCurve, Shadow, compare_policies, lift, lift_by_round
from restive.desk.program import Program
from restive.desk.projection import RewardTotals, RoundTotals
from restive.desk.selection import FREE
from restive.desk.templates import TEMPLATES
from restive.errors import InputError
from restive.version import __version__

MAX_SHADOW_ROUNDS = 200  # a shadow policy is compared over the last rounds only, so that the log need not be read whole
MAX_MISSING = 0.05  # the share of outcomes that may be missing before the lift comes with a caution


@dataclass(frozen=True)
class RoundRow:
    """The totals of one round; means are per person."""

    round: int
    at: str  # when it was decided
    present: int  # people with a state in this round
    budget: int
    advised: int  # on the list
    done: int  # of these, done
    failed: int  # of these, reported as not done
    outcomes: int  # people with a recorded outcome
    unlisted: int = 0  # done, though not on the list
    explored: int = 0  # of those on the list, chosen at random to learn
    reward_mean: float = math.nan  # without the control group
    control_mean: float = math.nan
    expected_each: float = math.nan  # the benefit per person on the list that the policy expected


@dataclass(frozen=True)
class Waiting:
    """A round with missing outcomes, or without a list."""

    round: int
    missing: int  # people


@dataclass(frozen=True)
class People:
    """The number of people by status."""

    active: int
    left: int = 0
    erased: int = 0
    new: int = 0  # joined in the last round, unless it was the first
    control: int = 0  # active people in the control group


@dataclass(frozen=True)
class Learned:
    """The policy's estimate of the benefit of acting in one state."""

    state: str
    people: int  # with an estimate in this state
    benefit: float  # mean over them
    standard_deviation: float  # standard deviation over them
    helped: int  # of them, those with a positive benefit


class Step(NamedTuple):
    """One thing to do next: a sentence, and the verb of the desk and the round for it, if there are any."""

    message: str
    verb: str | None = None
    round: int | None = None


@dataclass(frozen=True)
class Status:
    """The status of a program."""

    name: str
    title: str
    store: str  # its address, without a password
    policy: str  # as it is written on the command line, with its settings
    seed: int
    people: People
    words: Words = field(default_factory=Words)
    rounds: Sequence[RoundRow] = ()
    waiting: Sequence[Waiting] = ()
    lift: Lift | None = None
    curve: LiftCurve | None = None  # over the same rounds as `rounds`
    caution: str = ""  # why the lift is not reliable yet
    shadow_policy: str | None = None
    shadow: Shadow | None = None
    learned: Sequence[Learned] = ()
    far_sighted: bool = True  # benefits count all future rounds, not the next one alone
    horizon: int | None = None
    steps: Sequence[Step] = ()  # the most urgent first
    version: str = field(default=__version__)

    @property
    def actions(self) -> int:
        """Actions done in all rounds, on a list or not."""
        return sum(row.done + row.unlisted for row in self.rounds)

    @property
    def budget_used(self) -> float:
        """The share of all budgets that was done as listed, NaN before the first round."""
        budget = sum(row.budget for row in self.rounds)
        return sum(row.done for row in self.rounds) / budget if budget else math.nan

    def as_json(self) -> StatusAnswer:
        """The status as plain data without the address of the store."""
        record: dict[str, Any] = _plain(self)
        del record["store"]
        gained = self.lift.per_action(self.actions) if self.lift else None
        used = {"actions": self.actions, "budget_used": _plain(self.budget_used)}
        return cast("StatusAnswer", record | used | {"extra_per_action": _plain(gained)})


def get_status(program: Program) -> Status:
    """The status of a program."""
    projection = program.projection
    config, agents = projection.config, projection.agents
    people = _count_people(program)
    waiting = [Waiting(totals.round, totals.waiting) for totals in projection.rounds if totals.waiting]
    return Status(
        name=program.name,
        title=find_title(config),
        store=program.store.address,
        policy=config.policy,
        seed=config.seed,
        people=people,
        words=config.words,
        rounds=[_round_row(totals) for totals in projection.rounds],
        waiting=waiting,
        lift=lift(agents.total, agents.seen, agents.control, config.words) if agents.control.any() else None,
        curve=_lift_curve(projection.rounds),
        caution=_caution(projection.rounds),
        shadow_policy=config.shadow,
        shadow=compare_shadow(program) if config.shadow else None,
        learned=find_learned(program),
        far_sighted=projection.policy_states["policy"].policy.far_sighted,
        horizon=config.horizon,
        steps=next_steps(config.words, people, waiting, len(projection.rounds), config.horizon),
    )


def summarize(program: Program) -> ProgramSummary:
    """A program in a list of programs; if it cannot be read, `error` says why."""
    summary: ProgramSummary = {
        "name": program.name,
        "created": program.created,
        "people": None,
        "rounds": None,
        "events": None,
        "waiting": None,
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
        "policy": projection.config.policy,
        "template": projection.config.template,
        "title": find_title(projection.config),
    }


def next_steps(
    words: Words, people: People, waiting: Sequence[Waiting], decided: int, horizon: int | None = None
) -> list[Step]:
    """What the team can do now, the most urgent first; decided is the number of rounds so far.

    >>> next_steps(Words(), People(active=40), [Waiting(7, missing=12)], decided=7)[0]
    Step(message='Round 7 waits for the outcomes of 12 people.', verb='learn', round=7)
    """
    steps = [_waiting_step(words, each) for each in sorted(waiting, key=lambda each: each.round)]
    last = max([decided, *(each.round for each in waiting)])
    if not people.active and not decided:
        steps.append(Step("Nobody has joined yet; everybody with a state in the first round joins.", "decide"))
    elif horizon is not None and last >= horizon:
        steps.append(Step(f"All {horizon} rounds are decided; the program ends with the last outcomes."))
    else:
        steps.append(Step(f"Round {last + 1} can be decided as soon as its states are known.", "decide"))
    if decided and not people.control:
        steps.append(Step("There is no control group, so the effect of the program cannot be measured."))
    return steps


def _waiting_step(words: Words, waiting: Waiting) -> Step:
    missing = count_people(waiting.missing, words)
    return Step(f"Round {waiting.round} waits for the outcomes of {missing}.", "learn", waiting.round)


def find_learned(program: Program) -> list[Learned]:
    """For each state, the benefit that the policy expects from acting, over all active people."""
    projection = program.projection
    policy_state, active = projection.policy_states["policy"], projection.agents.active
    if policy_state.belief is None:
        return []
    found = []
    for code, state in enumerate(projection.config.states):
        estimate = policy_state.policy.estimate(policy_state.belief, np.full((1, projection.agents.count), code))
        known = active & np.isfinite(estimate.benefit[0]) & ~np.isinf(estimate.error[0])
        benefit = estimate.benefit[0][known]
        mean, standard_deviation = (
            (float(benefit.mean()), float(benefit.std())) if benefit.size else (math.nan, math.nan)
        )
        found.append(Learned(state, int(known.sum()), mean, standard_deviation, int((benefit > 0).sum())))
    return found


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
    """The title of the template, unless the program has its own states or words."""
    template = TEMPLATES.get(config.template or "")
    if template is None or config.states != template.states:
        return ""
    return template.title if all(getattr(config.words, name) == getattr(template, name) for name in WORDS) else ""


def _caution(rounds: Sequence[RoundTotals]) -> str:
    """Why the lift is not reliable yet: people whose outcomes are late may differ from the others."""
    decided = [totals for totals in rounds if not totals.cancelled]
    missing, expected = sum(totals.waiting for totals in decided), sum(totals.present for totals in decided)
    if missing <= MAX_MISSING * expected or missing == expected:
        return ""
    known = f"{expected - missing:,} of {expected:,} outcomes are known"
    return f"Only {known}. If people on the list are reported sooner than others, the lift is not reliable yet."


def _count_people(program: Program) -> People:
    projection = program.projection
    agents = projection.agents
    before = projection.rounds[-2].agents if len(projection.rounds) > 1 else agents.count
    return People(
        active=int(agents.active.sum()),
        left=int((~agents.active & ~agents.erased).sum()),
        erased=int(agents.erased.sum()),
        new=int(agents.active[before:].sum()),
        control=int((agents.control & agents.active).sum()),
    )


def _round_row(totals: RoundTotals) -> RoundRow:
    unknown = totals.benefit is None or not totals.advised
    return RoundRow(
        round=totals.round,
        at=totals.at,
        present=totals.present,
        budget=0 if totals.cancelled else totals.budget,
        advised=0 if totals.cancelled else totals.advised,
        done=totals.done - totals.unlisted,
        unlisted=totals.unlisted,
        failed=totals.failed,
        outcomes=totals.outcomes,
        explored=totals.explored,
        reward_mean=_mean(totals.treated),
        control_mean=_mean(totals.control),
        expected_each=math.nan if unknown else cast("float", totals.benefit) / totals.advised,
    )


def _mean(side: RewardTotals) -> float:
    return side.total / side.seen if side.seen else math.nan


def _lift_curve(rounds: Sequence[RoundTotals]) -> LiftCurve | None:
    if not any(totals.outcomes for totals in rounds):
        return None
    sides = [[totals.treated for totals in rounds], [totals.control for totals in rounds]]
    sums, squares, counts = (
        np.array([[getattr(each, name) for each in side] for side in sides]) for name in ("total", "square", "seen")
    )
    return lift_by_round(sums, squares, counts)


def _plain(value: Any) -> Any:
    """Records as dictionaries, arrays as lists, and null for numbers that are not finite."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
