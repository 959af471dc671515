"""Compile the kernels of policies ahead of their first use, by deciding rounds in a temporary store.

Machine code is cached on disk (`restive.kernels.jit`), so an image or a machine that is prepared once starts fast.
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from restive.desk.desk import Desk
from restive.problems import make_problems
from restive.simulation import simulate

AGENTS, ROUNDS = 40, 2
# Some kernels of policies are called after many steps only.
STEPS = 64


def compile_policies(
    policies: Sequence[tuple[str, str | None]], progress: Callable[[int, int], None] = lambda done, total: None
) -> None:
    """Compile what a program of each policy and shadow policy needs to decide and to learn."""
    problem = make_problems("two-state-v1", instances=1, agents=AGENTS, budget=AGENTS // 4)
    with tempfile.TemporaryDirectory() as folder, Desk(Path(folder) / "warm.db") as scratch:
        for number, (policy, shadow) in enumerate(policies):
            program = scratch.create(
                f"warm-{number}", states=["low", "high"], rewards=[0, 1], policy=policy, shadow=shadow, horizon=ROUNDS
            )
            for _ in range(ROUNDS):
                program.decide([{"agent": f"a{agent}", "state": agent % 2} for agent in range(AGENTS)], again=True)
                program.learn([{"agent": f"a{agent}", "next_state": agent % 2} for agent in range(AGENTS)])
            for name in filter(None, (policy, shadow)):
                simulate(problem, name, horizon=STEPS, threads=1)
            progress(number + 1, len(policies))
