"""Problems as Gymnasium environments: one run (`Environment`), or R runs in lock step (`VectorEnvironment`).

Importing this package registers `restive/<id>` for every id in `restive.problems.PROBLEMS`. `reset(seed=k)` makes the
world of `simulate(..., seed=k)`, so a policy driven by a `PolicyAgent` meets the same random numbers, bit for bit.
"""

try:
    import gymnasium
except ModuleNotFoundError as missing:
    if missing.name != "gymnasium":
        raise
    raise ImportError("restive.gym needs Gymnasium: pip install 'restive[gym]'") from None

from restive.gym.agent import PolicyAgent
from restive.gym.envs import Environment, VectorEnvironment
from restive.gym.spaces import AgentSets
from restive.problems import PROBLEMS

__all__ = ["AgentSets", "Environment", "PolicyAgent", "VectorEnvironment"]

for _name in PROBLEMS:
    gymnasium.register(
        f"restive/{_name}",
        entry_point="restive.gym:Environment",
        vector_entry_point="restive.gym:VectorEnvironment",
        kwargs={"problem": _name},
    )
