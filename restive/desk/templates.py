"""Templates: application domains as words and defaults for a program, so that nobody has to begin with an empty page.

A template names the states from bad to good with what each is worth in a round, the action, the people and the rhythm.
`problem` is the family of simulated people that goes with it, which has the same states and rewards; nothing else is
taken from it. The domains are those of the first appendix of Xu, Nazarov, Rastogi, Periáñez and Gan (2026), in our own
words; every number here is ours, a place to start from.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from restive.errors import InputError


@dataclass(frozen=True)
class Template:
    """The words and defaults of one domain; `states`, `rewards` and `signs` go together, from bad to good."""

    name: str
    title: str
    about: str
    states: tuple[str, ...]
    rewards: tuple[float, ...]
    signs: tuple[str, ...]  # by what a team recognises each state
    reward_unit: str  # "orders a week": follows a number
    action: str  # "a coupon"
    acted: str  # "got a coupon": follows a person
    verb: str  # "give a coupon to": is followed by people
    person: str
    people: str
    every: str  # what a round is: "week", "month"
    problem: str
    groups: tuple[str, ...] = ()
    budget: int = 20  # actions in a round
    control: float = 0.1  # the share of people who are never acted on, to compare with
    cool_down: int = 2  # nobody is acted on twice in so many rounds
    keep: int = 2  # for how many rounds a state that was not reported is carried on
    horizon: int | None = None  # how many rounds in all, where that is known


def find_template(name: str) -> Template:
    """The template of that name; a name that does not exist is refused with the nearest one.

    >>> find_template("pharmacy").states
    ('silent', 'occasional', 'regular', 'frequent')
    """
    if name not in TEMPLATES:
        near = difflib.get_close_matches(name.lower(), TEMPLATES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise InputError(f"there is no template {name!r}; there are {', '.join(TEMPLATES)}{hint}")
    return TEMPLATES[name]


GENERAL_USAGE = Template(
    name="general-usage",
    title="General usage",
    about="Keep the users of a product active by calling some of them each week.",
    states=("away", "active"),
    rewards=(0.5, 4.0),
    signs=("few or very short visits this week, left in the middle", "came on most days and did something of use"),
    reward_unit="active days a week",
    action="a call",
    acted="got a call",
    verb="call",
    person="user",
    people="users",
    every="week",
    problem="general-usage-v1",
    cool_down=3,
)

E_COMMERCE = Template(
    name="e-commerce",
    title="E-commerce",
    about="Bring the customers of a shop to buy again by sending some of them a personal discount each month.",
    states=("lapsed", "browsing", "buying"),
    rewards=(0.0, 0.25, 2.0),
    signs=(
        "no visit and no order this month",
        "looked around or left a full cart, at most one small order",
        "ordered more than once, from several departments",
    ),
    reward_unit="orders a month",
    action="a discount",
    acted="got a discount",
    verb="send a discount to",
    person="customer",
    people="customers",
    every="month",
    problem="e-commerce-v1",
)

E_LEARNING = Template(
    name="e-learning",
    title="E-learning",
    about="Keep learners going by offering some of them a reward each week for finishing on time.",
    states=("stuck", "slow", "steady"),
    rewards=(0.0, 0.5, 2.0),
    signs=(
        "opened no module this week, or failed its quiz and left",
        "opened modules but finished fewer than planned",
        "finished the modules of the week and passed their quizzes",
    ),
    reward_unit="modules finished a week",
    action="a finishing offer",
    acted="got a finishing offer",
    verb="make a finishing offer to",
    person="learner",
    people="learners",
    every="week",
    problem="e-learning-v1",
)

LOYALTY = Template(
    name="loyalty",
    title="Loyalty",
    about="Keep the members of a loyalty club taking part by giving some of them bonus points for feedback each month.",
    states=("idle", "collecting", "redeeming"),
    rewards=(0.0, 1.0, 3.0),
    signs=(
        "no points and no survey this month",
        "collected points, but redeemed nothing and left surveys open",
        "redeemed a reward, answered a survey or rose a level",
    ),
    reward_unit="activities a month",
    action="a bonus offer",
    acted="got a bonus offer",
    verb="give a bonus offer to",
    person="member",
    people="members",
    every="month",
    problem="loyalty-v1",
)

PATIENT_MANAGEMENT = Template(
    name="patient-management",
    title="Patient management",
    about="Help patients keep their follow-ups by promising some of them a bonus each week.",
    states=("behind", "patchy", "current"),
    rewards=(0.5, 2.0, 5.0),
    signs=(
        "hardly any record updated, most follow-ups missed",
        "some follow-ups done, others late or not logged",
        "records up to date, follow-ups done on time",
    ),
    reward_unit="follow-ups kept a week",
    action="a bonus",
    acted="was promised a bonus",
    verb="promise a bonus to",
    person="patient",
    people="patients",
    every="week",
    problem="patient-management-v1",
    cool_down=3,
)

PHARMACY = Template(
    name="pharmacy",
    title="Pharmacy orders",
    about="Keep pharmacists ordering on a wholesale platform by giving some of them a coupon each week.",
    states=("silent", "occasional", "regular", "frequent"),
    rewards=(0.0, 1.0, 3.0, 8.0),
    signs=(
        "no order this week",
        "a single order",
        "two to four orders",
        "five orders or more",
    ),
    reward_unit="orders a week",
    action="a coupon",
    acted="got a coupon",
    verb="give a coupon to",
    person="pharmacist",
    people="pharmacists",
    every="week",
    problem="pharmacy-v1",
    groups=("capital", "coast", "inland"),
)

TEMPLATES: Mapping[str, Template] = {
    template.name: template
    for template in (GENERAL_USAGE, E_COMMERCE, E_LEARNING, LOYALTY, PATIENT_MANAGEMENT, PHARMACY)
}
