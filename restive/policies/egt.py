"""`egt`: epsilon-greedy thresholding (eps-GT), algorithm 1 of Xu, Nazarov, Rastogi, Periáñez and Gan (AISTATS 2026).

For each agent and state it keeps the mean reward on arrival under each action; the estimated benefit is their
difference. Agents whose estimate reaches the threshold gamma come first, by estimate; the others follow by an upper
confidence bound. With probability epsilon all B agents of the step are drawn uniformly:

    epsilon = min(1, D / ((visits + 1)^p · min(eta², 1/2)))
    bound   = estimate + width(n₁) + width(n₀),   width(n) = 1.7 √((log log 2n + 0.72 log(10.4 T)) / n)

The width is that of Howard, Ramdas, McAuliffe and Sekhon (2021), which the paper cites and its lemma prints. Its
algorithm 1 has a misplaced bracket and no factor, √(log log(2n + 0.72 log(10.4 T)) / (n + 2)): width="printed".
`visits` is that of the least visited current state over agents (the paper's text and proof), or of the most visited one
(its printed formula) with exploration="most". Until both actions were seen in a state the estimate is 0 and the bound
infinite, as algorithm 1 initialises them; with unseen="first" the estimate is infinite too, as in the authors' code of
related algorithms. D="theory" is the D of theorem 4.4. The paper does not print D, p, eta and most gammas of its
experiments: the defaults are ours. gamma=None is just above minus the reward range: −8.9 for rewards 0 to 9, the
paper's ten states.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from restive.contract import Draws, Estimate, Ranking, Shape
from restive.kernels.jit import compiled, inlined
from restive.policies.base import Learner, Presets, check_setting
from restive.types import Floats, Ints

GAMMA_PER_RANGE = 89 / 90
CHOICES = (("exploration", "least", "most"), ("unseen", "zero", "first"), ("width", "howard", "printed"))


class EgtBelief(NamedTuple):
    """Visits and rewards, and the settings in force."""

    visits: Floats  # [R, N, S, A]
    total: Floats  # [R, N, S, A] sum of the rewards on arrival
    gamma: Floats  # [R] the threshold
    gap_squared: Floats  # [R] min(eta², 1/2), the squared gap of the exploration rate
    horizon: Floats  # [] T, or 0 if it is not known


class Rule(NamedTuple):
    """The settings that the ranking depends on, as its kernel takes them."""

    horizon: float
    least: bool  # whether the least visited current state counts, else the most visited
    unseen: float  # the estimate until both actions were seen
    howard: bool  # whether the width is that of Howard et al.


@dataclass(frozen=True)
class Egt(Learner[EgtBelief]):
    """Greedy on the estimated benefit of acting above a threshold; exploration decreases with the visits."""

    name: ClassVar[str] = "egt"
    version: ClassVar[int] = 2
    gamma: float | None = None
    eta: float = 1.0
    D: float | Any = 0.3  # a number, or "theory"
    p: float = 1.0
    exploration: str = "least"
    unseen: str = "zero"
    width: str = "howard"
    presets: ClassVar[Presets] = {
        "printed": {"D": "theory", "p": 1.0, "exploration": "most", "unseen": "zero", "width": "printed"},
        "authors": {"D": "theory", "p": 3.5, "exploration": "least", "unseen": "first", "width": "howard"},
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self.gamma is None or not np.isnan(self.gamma), self, "gamma", "a number, or None")
        check_setting(self.eta > 0, self, "eta", "above 0")
        numeric = isinstance(self.D, float | int) and not isinstance(self.D, bool)
        check_setting(self.D >= 0 if numeric else self.D == "theory", self, "D", "0 or more, or 'theory'")
        check_setting(self.p >= 0, self, "p", "0 or more")
        for setting, one, other in CHOICES:
            check_setting(getattr(self, setting) in (one, other), self, setting, f"{one!r} or {other!r}")

    @classmethod
    def theory(cls, agents: int, budget: int, gap: float, gamma: float) -> "Egt":
        """The setting of theorem 4.4: D = max(8N/B, 8N/(N−B), 2), p = 1, eta = gap, the paper's Δ.

        >>> Egt.theory(agents=2, budget=1, gap=0.1, gamma=0.3)
        Egt(gamma=0.3, eta=0.1, D=16.0, p=1.0, exploration='least', unseen='zero', width='howard')
        """
        return cls(gamma=gamma, eta=gap, D=theory_scale(agents, budget), p=1.0)

    def start(self, shape: Shape) -> EgtBelief:
        """No data."""
        gamma = -GAMMA_PER_RANGE * shape.reward_range if self.gamma is None else np.full(shape.runs, float(self.gamma))
        empty = np.zeros((shape.runs, shape.agents, shape.states, 2))
        gap_squared = np.full(shape.runs, min(min(self.eta, 1.0) ** 2, 0.5))
        return EgtBelief(empty, empty.copy(), gamma, gap_squared, np.array(float(shape.horizon or 0)))

    def rank(self, belief: EgtBelief, state: Ints, draws: Draws) -> Ranking:
        """Agents above the threshold by estimate, then the others by bound; explore by the visits of the current states."""
        rule = Rule(
            horizon=float(belief.horizon) or draws.step + 1.0,
            least=self.exploration == "least",
            unseen=np.inf if self.unseen == "first" else 0.0,
            howard=self.width == "howard",
        )
        priority, visits = np.empty(state.shape), np.empty(state.shape[0])
        _rank(belief.visits, belief.total, state, belief.gamma, rule, priority, visits)
        scale = theory_scale(state.shape[1], draws.budget) if self.D == "theory" else self.D
        return Ranking(priority, np.minimum(1.0, scale / ((visits + 1.0) ** self.p * belief.gap_squared)))

    def estimate(self, belief: EgtBelief, state: Ints) -> Estimate:
        """The difference of the mean rewards; error = range / 2 · √(1 / n₁ + 1 / n₀), an upper bound.

        Until both actions were seen in a state the difference is 0 and the error infinite. With gamma=None the reward
        range follows from the threshold; with another gamma it is not known, and the error is NaN.
        """
        unknown = np.full(state.shape[0], np.nan)
        span = -belief.gamma / GAMMA_PER_RANGE if self.gamma is None else unknown
        benefit, error = np.empty(state.shape), np.empty(state.shape)
        _estimate(belief.visits, belief.total, state, span, benefit, error)
        return Estimate(benefit, error, np.zeros(state.shape))

    def learn(self, belief: EgtBelief, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """Add the reward to its state and action."""
        _learn(belief.visits, belief.total, state, action, reward)


def theory_scale(agents: int, budget: int) -> float:
    """The D of theorem 4.4: max(8N/B, 8N/(N−B), 2)."""
    return max(8 * agents / max(budget, 1), 8 * agents / max(agents - budget, 1), 2.0)


@compiled
def _compare(visits: Floats, total: Floats, r: int, n: int, s: int) -> tuple[bool, float]:
    """Whether both actions were seen in s, and the difference of their mean rewards, else 0."""
    waited, acted = visits[r, n, s, 0], visits[r, n, s, 1]
    known = (waited > 0.0) & (acted > 0.0)
    # Divide in any case: a mispredicted branch costs more than a division.
    difference = total[r, n, s, 1] / max(acted, 1.0) - total[r, n, s, 0] / max(waited, 1.0)
    return known, difference if known else 0.0


@compiled
def _estimate(visits: Floats, total: Floats, state: Ints, span: Floats, benefit: Floats, error: Floats) -> None:
    for r in range(state.shape[0]):
        for n in range(state.shape[1]):
            s = state[r, n]
            known, benefit[r, n] = _compare(visits, total, r, n, s)
            rarity = 1.0 / max(visits[r, n, s, 1], 1.0) + 1.0 / max(visits[r, n, s, 0], 1.0)
            error[r, n] = 0.5 * span[r] * np.sqrt(rarity) if known else np.inf


@compiled
def _width(visits: float, rule: Rule) -> float:
    confidence = 0.72 * np.log(10.4 * rule.horizon)
    if rule.howard:
        return float(1.7 * np.sqrt((np.log(np.log(2.0 * visits)) + confidence) / visits))
    return float(np.sqrt(np.log(np.log(2.0 * visits + confidence)) / (visits + 2.0)))


@compiled
def _rank(
    visits: Floats, total: Floats, state: Ints, threshold: Floats, rule: Rule, priority: Floats, count: Floats
) -> None:
    """The priorities [R, N], and per run the visits of the least or most visited current state."""
    for r in range(state.shape[0]):
        gamma = threshold[r]
        extreme = np.inf if rule.least else -np.inf
        top, floor, low = -np.inf, np.inf, 0
        for n in range(state.shape[1]):
            s = state[r, n]
            waited, acted = visits[r, n, s, 0], visits[r, n, s, 1]
            both = waited + acted
            extreme = min(extreme, both) if rule.least else max(extreme, both)
            known, estimate = _compare(visits, total, r, n, s)
            estimate = estimate if known else rule.unseen
            priority[r, n] = estimate
            if estimate >= gamma:
                floor = min(floor, estimate)
            else:
                low += 1
                if known:
                    top = max(top, estimate + _width(acted, rule) + _width(waited, rule))
        if low > 0:
            _place_below(visits[r], state[r], gamma, rule, top, floor, priority[r])
        count[r] = extreme


@inlined
def _place_below(
    visits: Floats, state: Ints, gamma: float, rule: Rule, top: float, floor: float, priority: Floats
) -> None:
    """Rank the agents below gamma below `floor`, the lowest estimate above it, by their bounds, unseen ones first."""
    # Not relative to gamma, which may be so large, even infinite, that the bounds would be lost in rounding.
    start = floor if floor < np.inf else 0.0
    step = 1.0 + abs(start)
    for n in range(state.size):
        if priority[n] < gamma:
            waited, acted = visits[n, state[n], 0], visits[n, state[n], 1]
            if waited > 0.0 and acted > 0.0:
                bound = priority[n] + _width(acted, rule) + _width(waited, rule)
                priority[n] = start - 2.0 * step + (bound - top)
            else:
                priority[n] = start - step


@compiled
def _learn(visits: Floats, total: Floats, state: Ints, action: Ints, reward: Floats) -> None:
    for r in range(state.shape[0]):
        for n in range(state.shape[1]):
            visits[r, n, state[r, n], action[r, n]] += 1.0
            total[r, n, state[r, n], action[r, n]] += reward[r, n]
