"""Tasks: functions of plain settings that return columns, the same in any thread, process or machine.

Results depend on nothing but this package and what it imports; see `restive.paper.jobs.list_sources`.
"""

from collections.abc import Callable, Mapping

from restive.files import Columns
from restive.paper.tasks.concentration import concentration, excursions
from restive.paper.tasks.counterexamples import (
    arrivals,
    best_choices,
    collect,
    first_choices,
    three_states,
    unlike_agents,
)
from restive.paper.tasks.decomposition import decomposition
from restive.paper.tasks.good_agents import check_lemma
from restive.paper.tasks.limits import many_equal_agents, wiql_limit
from restive.paper.tasks.references import reference
from restive.paper.tasks.robustness import change, drift, slow_regret, worst_greedy_share
from restive.paper.tasks.simulation import bound, episodes, play, regret
from restive.paper.tasks.worst_case import hardest, theorem

TASKS: Mapping[str, Callable[..., Columns]] = {
    "play": play,
    "bound": bound,
    "reference": reference,
    "episodes": episodes,
    "regret": regret,
    "theorem": theorem,
    "hardest": hardest,
    "arrivals": arrivals,
    "first_choices": first_choices,
    "unlike_agents": unlike_agents,
    "best_choices": best_choices,
    "three_states": three_states,
    "collect": collect,
    "check_lemma": check_lemma,
    "concentration": concentration,
    "excursions": excursions,
    "decomposition": decomposition,
    "wiql_limit": wiql_limit,
    "many_equal_agents": many_equal_agents,
    "worst_greedy_share": worst_greedy_share,
    "slow_regret": slow_regret,
    "drift": drift,
    "change": change,
}
