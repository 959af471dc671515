"""The glossary of the pages: every term that a question mark explains, for the lead of a program.

`GLOSSARY` is keyed by the name in templates (`why("lift")`), which is also the anchor on the page (/glossary#lift).
"""

from collections.abc import Mapping
from typing import NamedTuple


class Entry(NamedTuple):
    """A term and its definition, in one to three sentences."""

    title: str
    definition: str


GLOSSARY: Mapping[str, Entry] = {
    "action": Entry(
        "Action",
        "What the team does for the people on the list, such as a call or a coupon. Each program has its own word for it.",
    ),
    "benefit": Entry(
        "Benefit",
        "What the action is expected to add for this person, compared with no action. "
        "It counts all remaining rounds, unless the page says that it counts only the next one.",
    ),
    "budget": Entry(
        "Budget",
        "How many people the team can act on in one round. The list is never longer than the budget.",
    ),
    "budget-used": Entry(
        "Budget used",
        "The share of all budgets so far that was spent on people on the list. "
        "Actions for people who were not on the list do not count.",
    ),
    "carried-over": Entry(
        "State carried over",
        "Nobody reported a state for this round, so the program uses the last known state. "
        "After a few rounds without a report, the person is left out until a new state arrives.",
    ),
    "control": Entry(
        "Control group",
        "People who are never on a list, chosen at random when they join. "
        "They show what would happen without the program.",
    ),
    "cool-down": Entry(
        "Cool-down",
        "The number of rounds that must pass before a person can be on a list again.",
    ),
    "erased": Entry(
        "Erased",
        "The id was deleted for good. What the program learned from this person stays, without the id.",
    ),
    "explored": Entry(
        "Chosen at random",
        "A few places on each list are filled at random and not by expected benefit. "
        "This is how the program finds out where its estimates are wrong.",
    ),
    "group": Entry(
        "Group",
        "A part of the people, such as a region. A program can guarantee each group a minimum share of the list.",
    ),
    "interval": Entry(
        "95% interval",
        "The range that contains the true value in about 95 of 100 such cases. "
        "A wide interval means that little is known. If it contains 0, there may be no difference.",
    ),
    "learned": Entry(
        "Benefit by state",
        "For each state, what the action is expected to add for the people of the program if they were in that state.",
    ),
    "lift": Entry(
        "Lift",
        "What the program adds for each person in each round: "
        "the average of the people in the program minus the average of the control group.",
    ),
    "margin": Entry(
        "± (margin of error)",
        "How far the number may be off. In about 95 of 100 cases the true value lies within this distance.",
    ),
    "must": Entry(
        "Required",
        "The team put this person on the list, whatever the expected benefit.",
    ),
    "never": Entry(
        "Excluded",
        "The team asked that this person is not on the list of this round.",
    ),
    "not-eligible": Entry(
        "Not eligible",
        "People with a state in this round who cannot be on its list. "
        "They are in the control group, in their cool-down, or excluded by the team.",
    ),
    "outcome": Entry(
        "Outcome",
        "What happened to a person in a round: whether the action was done, the next state, and the reward if rewards "
        "are reported. The program learns only from outcomes.",
    ),
    "overlap": Entry(
        "Overlap",
        "The share of the people on the list who would be on the shadow’s list too.",
    ),
    "policy": Entry(
        "Policy",
        "The method that makes the list. It balances what it knows about people against what it still has to learn.",
    ),
    "price": Entry(
        "Cost of rules",
        "How much more benefit the list could bring without this rule. A rule can be worth its cost.",
    ),
    "probability": Entry(
        "Probability",
        "How likely this person was to be on the list before the list was made. "
        "It lies between 0% and 100% if chance played a part, and allows fair comparisons later.",
    ),
    "reserve": Entry(
        "Reserve",
        "The next people in the ranking, in case somebody on the list cannot be reached.",
    ),
    "reward": Entry(
        "Reward",
        "What the program wants to increase, counted for each person and round, such as orders or visits.",
    ),
    "round": Entry(
        "Round",
        "One cycle of the program: states come in, a list goes out, outcomes come back. "
        "Most programs have one round a week or a month.",
    ),
    "shadow": Entry(
        "Shadow",
        "A second policy that makes its own list in each round. Nobody acts on that list. "
        "It shows at no risk whether another policy would do better.",
    ),
    "spread": Entry(
        "Spread",
        "How much people differ: about two thirds of them lie within this distance of the average.",
    ),
    "state": Entry(
        "State",
        "How a person is doing now, in one of a few words that the team agreed on, from worst to best.",
    ),
    "sure": Entry(
        "Confidence",
        "Clear: the benefit is larger than its margin of error. Unsure: it may be zero. "
        "Not known: there are no outcomes to estimate it from.",
    ),
    "unasked": Entry(
        "Not on the list",
        "The action was done for somebody who was not on the list.",
    ),
    "unsupported": Entry(
        "Not comparable",
        "Choices of the shadow that the policy would never make. "
        "Nobody knows their outcomes, so the comparison leaves them out.",
    ),
    "waiting": Entry(
        "Missing outcomes",
        "Outcomes that nobody has reported yet. You can report them late.",
    ),
}  # fmt: skip
