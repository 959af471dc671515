"""The comparison in sentences, all of them computed: who is best in a field, and which policy to take when.

A sentence is made of the numbers each time, so that none outlives them; one that has nothing to say is left out. Shares
are of the gap from random to the Whittle oracle; "told" means by the whole 95% interval.
"""

from collections.abc import Iterable, Mapping, Sequence

from restive.benchmark.cost import Costs
from restive.benchmark.fields import HERO
from restive.benchmark.scores import BOUND, EARLY, LATE, Match, Scores
from restive.benchmark.tables import two
from restive.paper.curves import FLOOR

REFERENCE = "egt"
NEAR = 0.02  # shares that count as the same for who looks at the cost
HALF = 0.5
MUCH = 0.05  # of the gap, left above the oracle
TINY = 0.005  # what two digits would show as nothing


def tell_field(match: Match) -> str:
    """Who is best early and late, and by how much over eps-GT."""
    return " ".join(_tell_best(match, step) for step in (EARLY, LATE))


def _tell_best(match: Match, step: int) -> str:
    best, *others = match.level(step)
    closed = two(match.gap_closed(best, step).value)
    told = f"By step {step} {best} is best with {closed} of the gap{_over_reference(match, best, step)}"
    return f"{told}; {join(others)} {_are(others)} not told apart from it." if others else f"{told}."


def _over_reference(match: Match, best: str, step: int) -> str:
    if best == REFERENCE:
        return ""
    lead = match.lead(best, REFERENCE, step)
    return f", {two(lead.value)} [{two(lead.low)}, {two(lead.high)}] above {REFERENCE}"


def advise(scores: Scores, costs: Costs | None = None) -> list[str]:
    """Which policy when, as far as these numbers tell."""
    sentences = [
        *(_most_often_best(scores, step) for step in (EARLY, LATE)),
        *(_ahead_of_hero(scores, step) for step in (EARLY, LATE)),
        *(_level_with_hero(scores, step) for step in (EARLY, LATE)),
        _cheapest(scores, costs),
        *(_nobody_half_way(scores, step) for step in (EARLY, LATE)),
        _more_above_the_oracle(scores),
        _above_the_oracle(scores),
        _below_random(scores),
    ]
    return [sentence for sentence in sentences if sentence]


def _most_often_best(scores: Scores, step: int) -> str:
    often = dict.fromkeys(scores.policies, 0)
    for match in scores.matches.values():
        for policy in match.level(step):
            often[policy] += 1
    first, second, *_ = sorted(often.items(), key=lambda entry: -entry[1])
    return (
        f"By step {step} {first[0]} is best or not told apart from the best in {_of(first[1], scores)}; "
        f"{f'next is {second[0]} with {second[1]}' if second[1] else 'no other is'}."
    )


def _ahead_of_hero(scores: Scores, step: int) -> str:
    """Where another policy is told to be better, by the one that is best there."""
    fields: dict[str, list[str]] = {}
    for name, match in scores.matches.items():
        best = match.best(step)
        if HERO not in match.level(step):
            fields.setdefault(best, []).append(f"{name} (by {_much(match.lead(best, HERO, step).value)})")
    if not fields:
        return f"By step {step} no policy is told to be better than {HERO} in any field that was played."
    return f"By step {step} best, and told to be better than {HERO}: {_by_policy(fields)}."


def _much(share: float) -> str:
    return two(share) if share >= TINY else f"less than {2 * TINY:g}"


def _level_with_hero(scores: Scores, step: int) -> str:
    """Where it does not matter much which of some policies is taken."""
    fields: dict[str, list[str]] = {}
    for name, match in scores.matches.items():
        level = match.level(step)
        for policy in level if HERO in level else ():
            fields.setdefault(policy, []).append(name)
    fields.pop(HERO, None)
    if not fields:
        return ""
    return f"By step {step} not told apart from the best, and neither is {HERO}: {_by_policy(fields)}."


def _cheapest(scores: Scores, costs: Costs | None) -> str:
    """By policy, the fields in which it is the cheapest of those that are as good as the best."""
    if costs is None:
        return ""
    fields: dict[str, list[str]] = {}
    for name, match in scores.matches.items():
        best = match.best(LATE)
        near = [policy for policy in scores.policies if match.lead(best, policy, LATE).value <= NEAR]
        taken = costs.nanoseconds[min(costs.nanoseconds, key=lambda states: abs(states - match.field.states))]
        fields.setdefault(min(near, key=lambda policy: taken[policy]), []).append(name)
    return f"The cheapest policy within {NEAR:g} of the best by step {LATE}: {_by_policy(fields)}."


def _nobody_half_way(scores: Scores, step: int) -> str:
    names = [
        f"{name} (at most {two(match.gap_closed(match.best(step), step).value)})"
        for name, match in scores.matches.items()
        if match.gap_closed(match.best(step), step).value < HALF
    ]
    return f"By step {step} no policy closes half of the gap in {join(names)}." if names else ""


def _more_above_the_oracle(scores: Scores) -> str:
    left = {name: match.gap_closed(BOUND, LATE) for name, match in scores.matches.items()}
    names = [f"{name} (up to {two(part.value - 1)})" for name, part in left.items() if part.low > 1 + MUCH]
    if not names:
        return ""
    return f"The fluid bound leaves room above the Whittle oracle, as a share of the gap, in {join(names)}."


def _above_the_oracle(scores: Scores) -> str:
    fields: dict[str, list[str]] = {}
    for name, match in scores.matches.items():
        for policy in scores.policies:
            if match.gap_closed(policy, LATE).low > 1:
                fields.setdefault(policy, []).append(f"{name} ({two(match.gap_closed(policy, LATE).value)})")
    return f"By step {LATE} told to be above the Whittle oracle: {_by_policy(fields)}." if fields else ""


def _below_random(scores: Scores) -> str:
    fields: dict[str, list[str]] = {}
    for name, match in scores.matches.items():
        for policy in scores.policies:
            if policy != FLOOR and match.told_better(FLOOR, policy, LATE):
                fields.setdefault(policy, []).append(f"{name} ({two(match.gap_closed(policy, LATE).value)})")
    return f"By step {LATE} told to be worse than random: {_by_policy(fields)}." if fields else ""


def _by_policy(fields: Mapping[str, Sequence[str]]) -> str:
    return join((f"{policy} in {join(names)}" for policy, names in fields.items()), "; ")


def _of(many: int, scores: Scores) -> str:
    fields = len(scores.matches)
    return f"{many} of {fields} fields" if fields != 1 else f"{many} of 1 field"


def _are(words: Sequence[str]) -> str:
    return "is" if len(words) == 1 else "are"


def join(words: Iterable[str], comma: str = ", ") -> str:
    """Words in a row.

    >>> join(["a"]), join(["a", "b"]), join(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *first, last = words
    joint = " and " if comma == ", " else comma
    return f"{comma.join(first)}{joint}{last}" if first else last
