"""Every problem as a Gymnasium environment, one (`Environment`) or R of them in lock step (`VectorEnvironment`).

Importing this package registers `restive/<id>` for every id in `restive.problems.PROBLEMS`. `reset(seed=k)` makes the
world of `simulate(..., seed=k)`, so a policy driven from outside by a `Player` meets the same luck, bit for bit.
"""

try:
    import gymnasium
except ModuleNotFoundError as missing:
    if missing.name != "gymnasium":
        raise
    raise ImportError("restive.gym needs Gymnasium: pip install 'restive[gym]'") from None

from restive.gym.agent import Player
from restive.gym.envs import Environment, VectorEnvironment
from restive.gym.spaces import AgentSets
from restive.problems import PROBLEMS

__all__ = ["AgentSets", "Environment", "Player", "VectorEnvironment"]

for _name in PROBLEMS:
    gymnasium.register(
        f"restive/{_name}",
        entry_point="restive.gym:Environment",
        vector_entry_point="restive.gym:VectorEnvironment",
        kwargs={"problem": _name},
    )
