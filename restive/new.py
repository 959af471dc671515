"""`restive new`: files to start from, such as a policy that works and fulfils the contract."""

import keyword
import re
from pathlib import Path
from typing import Annotated

import typer

from restive.console import print_notices
from restive.errors import InputError
from restive.files import write_atomic

new = typer.Typer(name="new", help="Write a file to start from.", no_args_is_help=True)

POLICY = '''"""{title}: acts where acting has brought more reward than waiting."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.contract import Draws, Ranking, Shape
from restive.policies.base import Learner, check_setting


class Totals(NamedTuple):
    """All that the policy remembers. Axes: R runs, N agents, S states, 2 actions."""

    visits: NDArray[np.float64]  # [R, N, S, 2]
    reward: NDArray[np.float64]  # [R, N, S, 2] their summed rewards


@dataclass(frozen=True)
class {title}(Learner[Totals]):
    """Act on the agents with the largest difference of mean rewards in their state."""

    explore: float = 0.1  # a setting: `{file}:explore=0.2`

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(0 <= self.explore <= 1, self, "explore", "a probability")

    def start(self, shape: Shape) -> Totals:
        size = (shape.runs, shape.agents, shape.states, 2)
        return Totals(np.zeros(size), np.zeros(size))

    def rank(self, belief: Totals, state: NDArray[np.int64], draws: Draws) -> Ranking:
        mean = belief.reward / np.maximum(belief.visits, 1)
        gain = mean[..., 1] - mean[..., 0]  # [R, N, S]
        priority = np.take_along_axis(gain, state[..., None], axis=2)[..., 0]
        return Ranking(priority, np.full(len(state), self.explore))

    def learn(
        self,
        belief: Totals,
        state: NDArray[np.int64],
        action: NDArray[np.int64],
        reward: NDArray[np.float64],
        after: NDArray[np.int64],
    ) -> None:
        run, agent = np.indices(state.shape)
        belief.visits[run, agent, state, action] += 1
        belief.reward[run, agent, state, action] += reward
'''


@new.callback()
def _group() -> None:
    """Write a file to start from."""


@new.command(name="policy")
def new_policy(
    file: Annotated[Path, typer.Argument(help="The .py file to write; the policy is named after it.")],
) -> None:
    """Write a policy of your own that works: change it, simulate it, check it."""
    name = file.stem.replace("-", "_")
    if file.suffix != ".py" or not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise InputError(f"{file}: a policy is a .py file named by lower-case letters, digits and dashes: mine.py.")
    if file.exists():
        raise InputError(f"{file}: this file exists; give another name.")
    title = "".join(part.capitalize() for part in name.split("_"))
    write_atomic(file, POLICY.format(title=title, file=file.name).encode())
    print_notices(
        f"wrote {file}",
        f"simulate it: restive simulate --policy {file} --policy random",
        f"check it: python -c \"from restive.checks import check_policy; check_policy('{file}')\"",
    )
