"""What the words on the pages mean, for somebody who leads a program: the one place where they are explained.

`WORDS` is by key: the key stands in templates (`why("lift")`) and in addresses (/words#lift).
"""

from collections.abc import Mapping
from typing import NamedTuple


class Word(NamedTuple):
    """A word and what it means, in one to three sentences."""

    title: str
    means: str


WORDS: Mapping[str, Word] = {
    "action": Word(
        "Action",
        "What the team does for the people on the list, such as a call or a coupon. "
        "Every program has its own word for it.",
    ),
    "benefit": Word(
        "Benefit",
        "What the action is expected to add for this person, compared with leaving the person alone. "
        "Unless a page says otherwise it counts all rounds to come, not only the next one.",
    ),
    "budget": Word(
        "Budget",
        "How many people the team can act on in one round. The list is never longer than that.",
    ),
    "budget-used": Word(
        "Budget used",
        "Of all the actions that the budgets allowed so far, the share that was done as advised. "
        "What was done unasked does not count here.",
    ),
    "probability": Word(
        "Chance",
        "How likely it was that this person would be put on the list, before it was drawn up. "
        "It is below 100% and above 0% where luck had a part, and it makes fair comparisons possible later.",
    ),
    "control": Word(
        "Control group",
        "Some people, drawn by lot when they join, are never put on a list. "
        "What happens to them shows what would happen without the program.",
    ),
    "cool-down": Word(
        "Cooling down",
        "Nobody is put on a list again before so many rounds have passed since the last time.",
    ),
    "error": Word(
        "± and give or take",
        "How far the number may be off. In about 95 of 100 cases the truth lies between "
        "the number less this and the number plus this.",
    ),
    "erased": Word(
        "Erased",
        "The name was removed for good. What the program learned from the person stays, as a number without a name.",
    ),
    "explored": Word(
        "By lot, to learn",
        "A few places on the list are given by luck instead of by expected benefit. "
        "Without them the program could not find out that it is wrong about somebody.",
    ),
    "expected-each": Word(
        "Expected each",
        "The benefit that was expected for a person on the list when it was drawn up, on average. "
        "It is a forecast; the lift is what came of it.",
    ),
    "group": Word(
        "Group",
        "A part of the people, such as a region. A program can promise each group a least share of the list.",
    ),
    "interval": Word(
        "95% interval",
        "The range in which the truth lies in about 95 of 100 such cases. "
        "The wider it is, the less is known; if it contains 0, there may be no difference at all.",
    ),
    "carried_over": Word(
        "State kept from earlier",
        "Nobody reported a state for this round, so the last one known is used. "
        "After a few rounds without a report a person is left out until there is news.",
    ),
    "learned": Word(
        "What was learned",
        "For each state, what the action is expected to add for the people of the program if they were in it. "
        "The spread says how much people differ from each other.",
    ),
    "left-out": Word(
        "Left out",
        "People with a state in this round who could not be chosen: because of the control group, "
        "because it was their turn recently, or because somebody said so.",
    ),
    "lift": Word(
        "Lift",
        "What the program adds for each person and round: the average of those in the program, "
        "less the average of the control group.",
    ),
    "must": Word(
        "In any case",
        "The team put this person on the list whatever the expected benefit.",
    ),
    "never": Word(
        "Never list",
        "The team asked that these people are not put on the list of this round.",
    ),
    "outcome": Word(
        "Outcome",
        "What happened after a round: whether the action was done, the state that the person was in next, "
        "and the reward if it is counted. The program learns from nothing else.",
    ),
    "overlap": Word(
        "In common",
        "The share of the people on the list whom the shadow would have put there too.",
    ),
    "policy": Word(
        "Policy",
        "The rule that draws up the list. It weighs what it has learned of people "
        "against what it still has to find out.",
    ),
    "price": Word(
        "What rules cost",
        "How much more benefit the list could be expected to bring without this rule. "
        "A rule may well be worth its price.",
    ),
    "reward": Word(
        "Reward",
        "What the program is for, counted for each person and round, such as orders or kept follow-ups.",
    ),
    "round": Word(
        "Round",
        "One turn of the program: states come in, a list goes out, outcomes come back. "
        "Most programs have one a week or one a month.",
    ),
    "shadow": Word(
        "Shadow",
        "A second policy that draws up a list of its own each round, which nobody acts on. "
        "It shows whether another policy would do better, at no risk.",
    ),
    "spare": Word(
        "Spare",
        "The next in line, for when somebody on the list cannot be reached.",
    ),
    "spread": Word(
        "Spread",
        "How much people differ from each other: about two thirds of them lie within this distance of the average.",
    ),
    "state": Word(
        "State",
        "How a person is doing right now, in one of a few words that the team has agreed on, from worst to best.",
    ),
    "sure": Word(
        "How sure",
        "Clear: the benefit is larger than it may be off. Unsure: it may just as well be nothing. "
        "Not known: this person has not taught anything yet.",
    ),
    "unasked": Word(
        "Unasked",
        "The action was done for somebody who was not on the list.",
    ),
    "unsupported": Word(
        "Cannot be compared",
        "Choices of the shadow that the policy would never have made. Nobody can say what would have come of them, "
        "so they are left out of the comparison.",
    ),
    "waiting": Word(
        "Waiting",
        "Outcomes that have not been reported yet. Late ones are welcome at any time.",
    ),
}  # fmt: skip
