"""restive: who gets the one intervention there is budget for, every round, when everyone moves by themselves."""

from restive.version import __version__

__all__ = [
    "POLICIES",
    "PROBLEMS",
    "InputError",
    "Problem",
    "Simulation",
    "Trace",
    "World",
    "__version__",
    "make_policy",
    "make_problems",
    "simulate",
]

from restive.errors import InputError
from restive.policies import POLICIES, make_policy
from restive.problem import Problem
from restive.problems import PROBLEMS, make_problems
from restive.simulate import Simulation, simulate
from restive.trace import Trace
from restive.world import World
