"""Results of a program: lift, rewards by round, effect by state, and the comparison with its shadow."""

from restive.desk.program import Program
from restive.desk.status import MAX_SHADOW_ROUNDS, as_plain, compare_shadow, get_status
from restive.server.views.base import Data, Query, program_page
from restive.server.views.filters import describe_curve

# Replaced by the page's own fields, or on the page of the status.
OMITTED = ("steps", "drift", "name", "words", "policy", "shadow_policy")


@program_page("results", "results.html")
def build_results(program: Program, _: Query) -> Data:
    """What the desk knows about the effect, in plain data, and its curves in words."""
    status = get_status(program)
    curve = status["curve"]
    return {
        **{key: value for key, value in status.items() if key not in OMITTED},
        "courses": {name: describe_curve(curve, name) for name in ("treated", "control", "lift")} if curve else None,
    }


@program_page("shadow", "shadow.html")
def build_shadow(program: Program, _: Query) -> Data:
    """The comparison in plain data; None without a shadow, or if there is nothing to compare yet."""
    found = compare_shadow(program) if program.config.shadow else None
    return {
        "over": min(MAX_SHADOW_ROUNDS, len(program.rounds)),
        "comparison": as_plain(found),
    }
