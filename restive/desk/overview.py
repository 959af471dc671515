"""A program at a glance, put together from its projection and its log: what is printed and drawn of it."""

import math

import numpy as np

from restive.api.types import ProgramSummary
from restive.desk.config import WORDS, Config
from restive.desk.desk import name_store
from restive.desk.lift import LiftCurve, Shadow, compare_policies, lift, lift_by_round
from restive.desk.program import Program
from restive.desk.projection import RewardTotals, RoundTotals
from restive.desk.selection import FREE
from restive.desk.status import Learned, People, RoundRow, Status, Waiting, next_steps
from restive.desk.templates import TEMPLATES
from restive.errors import InputError

# The last rounds that a shadow is compared over, so that a page of a large program does not read years of its log.
SHADOWED = 200
# The share of outcomes that may be missing before the lift comes with a caution.
MUCH = 0.05


def look_at(program: Program) -> Status:
    """All that the page of a program shows."""
    projection = program.projection
    config, agents = projection.config, projection.agents
    people = _count_people(program)
    waiting = [
        _waiting(line) for line in projection.rounds if line.waiting or not (line.decided >= 0 or line.cancelled)
    ]
    called = program.name + name_store(program.store.address)
    decided = sum(line.decided >= 0 or line.cancelled for line in projection.rounds)
    return Status(
        name=program.name,
        title=find_title(config),
        store=program.store.address,
        policy=config.policy,
        seed=config.seed,
        people=people,
        words=config.words,
        rounds=[_row(line) for line in projection.rounds],
        waiting=waiting,
        lift=lift(agents.total, agents.seen, agents.control, config.words) if agents.control.any() else None,
        curve=_curve(projection.rounds),
        caution=_caution(projection.rounds),
        shadow_policy=config.shadow,
        shadow=compare_shadow(program) if config.shadow else None,
        learned=find_learned(program),
        ahead=projection.policy_states["policy"].policy.far_sighted,
        horizon=config.horizon,
        steps=next_steps(called, config.words, people, waiting, decided, config.horizon),
    )


def summarise(program: Program) -> ProgramSummary:
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
    return {
        **summary,
        "people": int(projection.agents.active.sum()),
        "rounds": len(projection.rounds),
        "events": projection.length,
        "waiting": sum(line.waiting for line in projection.rounds),
        "policy": projection.config.policy,
        "template": projection.config.template,
        "title": find_title(projection.config),
    }


def find_learned(program: Program) -> list[Learned]:
    """For each state, what the policy expects of acting on the people there are, if they were in it."""
    projection = program.projection
    policy_state, active = projection.policy_states["policy"], projection.agents.active
    if policy_state.belief is None:
        return []
    found = []
    for code, state in enumerate(projection.config.states):
        estimate = policy_state.policy.estimate(policy_state.belief, np.full((1, projection.agents.count), code))
        known = active & np.isfinite(estimate.benefit[0]) & ~np.isinf(estimate.error[0])
        benefit = estimate.benefit[0][known]
        mean, spread = (float(benefit.mean()), float(benefit.std())) if benefit.size else (math.nan, math.nan)
        found.append(Learned(state, int(known.sum()), mean, spread, int((benefit > 0).sum())))
    return found


def compare_shadow(program: Program) -> Shadow | None:
    """The shadow against the policy, over all that could be chosen and of whom an outcome is known."""
    parts = []
    for line in program.rounds[-SHADOWED:]:
        if line.decided >= 0 and line.outcomes:
            found = program.cache.get_round(line.round)
            if "shadow_probability" in found.columns:
                rows = (found.columns["exclusion"] == FREE) & (found.after >= 0)
                names = ("chosen", "probability", "shadow_probability", "shadow_chosen")
                parts.append([found.reward[rows], *(found.columns[name][rows] for name in names), found.number[rows]])
    if not parts:
        return None
    reward, chosen, probability, shadow_probability, shadow_chosen, agent = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    return compare_policies(reward, chosen, probability, shadow_probability, agent, shadow_chosen, program.config.words)


def find_title(config: Config) -> str:
    """That of the template, unless the program has states or words of its own."""
    template = TEMPLATES.get(config.template or "")
    if template is None or config.states != template.states:
        return ""
    return template.title if all(getattr(config.words, name) == getattr(template, name) for name in WORDS) else ""


def _caution(lines: list[RoundTotals]) -> str:
    """Why the lift is not to be read yet: who reports late may be another kind of people."""
    decided = [line for line in lines if line.decided >= 0 and not line.cancelled]
    missing, asked = sum(line.waiting for line in decided), sum(line.present for line in decided)
    if missing <= MUCH * asked or missing == asked:
        return ""
    seen = f"{asked - missing:,} of {asked:,} outcomes are in"
    return f"Only {seen}. If people on the list are reported sooner than others, this is not to be relied on yet."


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


def _waiting(line: RoundTotals) -> Waiting:
    return Waiting(line.round, line.waiting, line.decided >= 0)


def _mean(side: RewardTotals) -> float:
    return side.total / side.seen if side.seen else math.nan


def _row(line: RoundTotals) -> RoundRow:
    benefit = math.nan if line.benefit is None or not line.advised else line.benefit / line.advised
    advised = 0 if line.cancelled else line.advised
    return RoundRow(
        round=line.round,
        at=line.at,
        present=line.present,
        budget=0 if line.cancelled else line.budget,
        advised=advised,
        done=line.done - line.unasked,
        unasked=line.unasked,
        failed=line.failed,
        outcomes_in=line.outcomes,
        explored=line.explored,
        reward_mean=_mean(line.treated),
        control_mean=_mean(line.control),
        expected_each=benefit,
    )


def _curve(lines: list[RoundTotals]) -> LiftCurve | None:
    if not any(line.outcomes for line in lines):
        return None
    sides = [[line.treated for line in lines], [line.control for line in lines]]
    sums, squares, counts = (
        np.array([[getattr(each, name) for each in side] for side in sides]) for name in ("total", "square", "seen")
    )
    return lift_by_round(sums, squares, counts)
