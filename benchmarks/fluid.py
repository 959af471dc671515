"""The fluid bound against HiGHS on the same linear program: `python -m benchmarks.fluid`.

HiGHS runs its interior point method on one thread, without crossover, at its own tolerances, with and without presolve;
the faster of the two counts, and building the model does not. Ours stops at a gap of 0.1 % between bound and value, and
the bound must be above the optimum that HiGHS finds, the value below it.
"""

import highspy
import numpy as np

from benchmarks.timing import Row, best_of
from restive.solvers.fluid import plan
from restive.types import Floats


def draw_random(agents: int, states: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    if states == 2:
        up = rng.random((agents, 2, 2))
        transition = np.stack([1 - up, up], axis=-1)
    else:
        transition = rng.random((agents, 2, states, states))
        transition /= transition.sum(axis=-1, keepdims=True)
    return transition, np.tile(np.arange(float(states)), (agents, 1))


def draw_sticky(agents: int) -> tuple[Floats, Floats]:
    """Wireless channels: they seldom change, and acting makes good states likelier."""
    rng = np.random.default_rng(0)
    good = np.sort(rng.uniform(0.02, 0.27, size=(agents, 2)), axis=1)
    bad = -np.sort(-rng.uniform(0.01, 0.14, size=(agents, 2)), axis=1)
    transition = np.stack([np.stack([1 - good, good], axis=-1), np.stack([bad, 1 - bad], axis=-1)], axis=-2)
    return transition, np.tile([0.9, 1.0], (agents, 1))


def build_program(transition: Floats, reward: Floats, budget: int, horizon: int) -> highspy.HighsLp:
    """The program over mu [T, N, S, 2], column by column: one flow row [T, N, S] each, and one budget row a step."""
    agents, states = reward.shape
    flow = np.arange(horizon * agents * states).reshape(horizon, agents, states)
    shape = (horizon, agents, states, 2)
    here = np.broadcast_to(flow[..., None], shape)[..., None]
    limit = np.broadcast_to((flow.size + np.arange(horizon))[:, None, None, None], shape)[..., None]
    there = np.broadcast_to(np.roll(flow, -1, axis=0)[:, :, None, None, :], (*shape, states))
    weight = np.broadcast_to(-np.swapaxes(transition, 1, 2), (*shape, states)).copy()
    weight[-1] = 0.0
    places = np.concatenate([here, limit, there], axis=-1).ravel()
    entries = np.concatenate(
        [np.ones((*shape, 1)), np.broadcast_to([[0.0], [1.0]], (*shape, 1)), weight], axis=-1
    ).ravel()
    columns = np.repeat(np.arange(flow.size * 2), states + 2)[entries != 0]
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = flow.size * 2, flow.size + horizon
    program.col_cost_ = -np.broadcast_to(np.einsum("nasj,nj->nsa", transition, reward), shape).ravel()
    program.col_lower_, program.col_upper_ = np.zeros(flow.size * 2), np.full(flow.size * 2, np.inf)
    side = np.zeros(flow.size + horizon)
    side[: agents * states], side[flow.size :] = 1 / states, budget
    program.row_lower_ = program.row_upper_ = side
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = np.searchsorted(columns, np.arange(flow.size * 2 + 1))
    program.a_matrix_.index_, program.a_matrix_.value_ = places[entries != 0], entries[entries != 0]
    return program


def solve_program(program: highspy.HighsLp, presolve: str) -> tuple[float, float]:
    """The seconds it took, and the optimum."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("solver", "ipm")
    solver.setOptionValue("run_crossover", "off")
    solver.setOptionValue("presolve", presolve)
    solver.passModel(program)
    seconds = best_of(solver.run, 1)
    return seconds, -float(solver.getInfo().objective_function_value)


def compare(name: str, agents: tuple[Floats, Floats], budget: int, horizon: int) -> Row:
    """One row, after a look whether both solve the same problem."""
    best = plan(*agents, budget, horizon)
    ours = best_of(lambda: plan(*agents, budget, horizon), 7)
    program = build_program(*agents, budget, horizon)
    theirs, optimum = min(solve_program(program, presolve) for presolve in ("on", "off"))
    if not best.value <= optimum * (1 + 1e-7) <= best.bound * (1 + 2e-7) or best.gap > 1e-3:
        raise AssertionError(f"{name}: {best.value} to {best.bound} misses the optimum {optimum} or the gap wanted.")
    return Row(f"fluid bound, {name}", "HiGHS interior point", ours, theirs, "≥ 20")


def rows() -> list[Row]:
    return [
        compare("N=50, S=2, B=5, T=300", draw_random(50, 2), 5, 300),
        compare("N=50, S=2, B=10, T=300", draw_random(50, 2), 10, 300),
        compare("N=50, S=2, B=20, T=300", draw_random(50, 2), 20, 300),
        compare("wireless, N=50, S=2, B=10, T=300", draw_sticky(50), 10, 300),
        compare("N=50, S=10, B=10, T=20", draw_random(50, 10), 10, 20),
        compare("N=500, S=2, B=5, T=30", draw_random(500, 2), 5, 30),
    ]


def main() -> None:
    for row in rows():
        ratio = f"{row.theirs / row.ours:6.0f} times as fast, wanted {row.wanted}"
        print(f"{row.what:45} {1000 * row.ours:6.1f} ms   {row.against} {row.theirs:6.2f} s   {ratio}")


if __name__ == "__main__":
    main()
