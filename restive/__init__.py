"""restive: online restless bandits. Choose, every round, which B of N agents get the one intervention.

The names below are imported at their first use, so that `import restive` and `import restive.client` stay fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from restive.version import __version__

if TYPE_CHECKING:
    from restive.agent import Agent
    from restive.comparison import Comparison, compare
    from restive.errors import InputError
    from restive.logs.evaluate import evaluate
    from restive.logs.examine import examine
    from restive.logs.fit import fit
    from restive.logs.forecast import forecast
    from restive.logs.history import History
    from restive.logs.model import FittedModel
    from restive.logs.trial import read_trial
    from restive.logs.trial_plan import plan_trial
    from restive.policies import POLICIES, make_policy
    from restive.problem import Problem
    from restive.problems import PROBLEMS, make_problems
    from restive.simulation import Simulation, simulate
    from restive.sweeps import Sweep, sweep
    from restive.trace import Trace
    from restive.world import World

__all__ = [
    "POLICIES",
    "PROBLEMS",
    "Agent",
    "Comparison",
    "FittedModel",
    "History",
    "InputError",
    "Problem",
    "Simulation",
    "Sweep",
    "Trace",
    "World",
    "__version__",
    "compare",
    "evaluate",
    "examine",
    "fit",
    "forecast",
    "make_policy",
    "make_problems",
    "plan_trial",
    "read_trial",
    "simulate",
    "sweep",
]

_MODULES = {
    "Agent": "agent",
    "Comparison": "comparison",
    "compare": "comparison",
    "FittedModel": "logs.model",
    "InputError": "errors",
    "fit": "logs.fit",
    "History": "logs.history",
    "evaluate": "logs.evaluate",
    "examine": "logs.examine",
    "forecast": "logs.forecast",
    "plan_trial": "logs.trial_plan",
    "read_trial": "logs.trial",
    "POLICIES": "policies",
    "make_policy": "policies",
    "Problem": "problem",
    "PROBLEMS": "problems",
    "make_problems": "problems",
    "Simulation": "simulation",
    "simulate": "simulation",
    "Sweep": "sweeps",
    "sweep": "sweeps",
    "Trace": "trace",
    "World": "world",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'restive' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"restive.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
