"""A program as Parquet files for analysis: its agents, its rounds, and a row for each agent and round.

    FOLDER/agents.parquet, rounds.parquet, records/round-00001.parquet, ...

Records hold what off-policy evaluation needs: the state, whether the agent was advised and with what probability,
whether the action was done, the reward and the next state. Read them as one table with the pattern records/*.parquet.
"""

import tempfile
import zipfile
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import cast

import numpy as np
import polars as pl

from restive.api.types import Person, RoundSummary
from restive.desk.display import as_series
from restive.desk.events import EXCLUSIONS
from restive.desk.features import decode
from restive.desk.program import Program
from restive.desk.roster import ERASED
from restive.desk.rounds import DONE, UNKNOWN, Round
from restive.desk.table_files import PART_ROWS, write_table_file
from restive.errors import InputError
from restive.types import Ints


def export(
    program: Program,
    folder: str | PathLike[str],
    progress: Callable[[int, int], None] = lambda done, total: None,
    display: bool = False,
) -> list[Path]:
    """Write a program into a folder; returns the files. `display`: the agents with their display columns."""
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise InputError(f"{place} is a file; an export needs a folder.")
    (place / "records").mkdir(parents=True, exist_ok=True)
    files = [place / "agents.parquet", place / "rounds.parquet"]
    count = program.projection.agents.count
    starts = range(0, max(count, 1), PART_ROWS)
    parts = (_agents_part(program, np.arange(start, min(start + PART_ROWS, count)), display) for start in starts)
    write_table_file(parts, files[0])
    write_table_file(rounds_table(program), files[1])
    for line in program.rounds:
        found = program.cache.get_round(line.round)
        files.append(place / "records" / f"round-{line.round:05}.parquet")
        write_table_file(records_table(program, found), files[-1])
        progress(line.round, len(program.rounds))
    for other in set((place / "records").glob("round-*.parquet")) - set(files):
        other.unlink()  # of another export; the pattern would read it too
    return files


def _agents_part(program: Program, numbers: Ints, display: bool) -> pl.DataFrame:
    """The agents of these numbers, with their features, and their display columns if wanted."""
    features = decode(program.projection.agents.features[numbers], program.config.features)
    kinds = {name: pl.String if categories else pl.Float64 for name, categories in program.config.features.items()}
    columns = {name: pl.Series(values, dtype=kinds[name]) for name, values in features.items()}
    agents = agents_table(program, numbers).with_columns(**columns)
    if not display:
        return agents
    cells = program.store.display(program.id, numbers)
    return agents.with_columns(as_series(cells, numbers, program.config.display))


def export_zip(program: Program, file: str | PathLike[str]) -> Path:
    """Write the same files into one ZIP file, in a folder of the program's name; returns the file."""
    place = Path(file)
    with tempfile.TemporaryDirectory(prefix="restive-", dir=place.parent) as folder:
        files = export(program, folder)
        with zipfile.ZipFile(place, "w", zipfile.ZIP_STORED) as packed:  # Parquet is compressed already
            for each in files:
                packed.write(each, Path(program.name) / each.relative_to(folder))
    return place


def agents_table(program: Program, numbers: Ints | None = None) -> pl.DataFrame:
    """A row for each agent that ever joined, or for some of them; an erased agent has no name."""
    projection, states = program.projection, [*program.config.states, None]
    agents, groups = projection.agents, [*projection.groups, None]
    some = np.arange(agents.count) if numbers is None else numbers
    cost = {"cost": pl.Series(agents.cost[some]).fill_nan(None)} if program.config.cost_unit else {}
    return pl.DataFrame(
        {
            "number": some,
            "agent": program.names.roster.gather(some),
            "group": pl.Series([groups[code] for code in agents.group[some].tolist()], dtype=pl.String),
            "active": agents.active[some],
            "control": agents.control[some],
            "state": pl.Series([states[code] for code in agents.state[some].tolist()], dtype=pl.String),
            "rounds_seen": agents.seen[some],
            "reward_total": agents.total[some],
            **cost,
        }
    )


def describe_people(program: Program, numbers: Ints) -> list[Person]:
    """Some agents as plain data, as the process knows their names, with their display columns."""
    names = pl.Series("agent", program.names.call(numbers), pl.String)
    rows = agents_table(program, numbers).with_columns(names).to_dicts()
    for row, cells in zip(rows, program.display(numbers), strict=True):
        row.setdefault("cost", None)
        row["display"] = cells
    return cast("list[Person]", rows)


def rounds_table(program: Program) -> pl.DataFrame:
    """A row for each round."""
    return pl.DataFrame(summarize_rounds(program), infer_schema_length=None)


def summarize_rounds(program: Program) -> list[RoundSummary]:
    """The totals of each round."""
    costs = bool(program.config.cost_unit)
    return [
        {
            "round": line.round, "label": line.label, "due": line.due, "at": line.at, "budget": line.budget,
            "present": line.present, "carried_over": line.carried_over, "cancelled": line.cancelled, "advised": line.advised,
            "planned": line.planned if costs else None, "spent": line.spent if costs else None,
            "explored": line.explored, "done": line.done - line.unlisted,
            "failed": line.failed, "unlisted": line.unlisted, "outcomes": line.outcomes,
            "treated_outcomes": line.treated.seen, "treated_reward": line.treated.total,
            "control_outcomes": line.control.seen, "control_reward": line.control.total,
        }
        for line in program.rounds
    ]  # fmt: skip


def records_table(program: Program, found: Round) -> pl.DataFrame:
    """A row for each agent of a round."""
    states = pl.Series(program.config.states, dtype=pl.String)
    names = program.names.roster.gather(found.number).fill_null(ERASED)
    columns = {
        "round": np.full(found.number.size, found.round),
        "number": found.number,
        "agent": names,
        "state": states.gather(found.state),
        "carried_over": found.carried_over,
        **({} if found.given.cost is None else {"cost": found.given.cost}),
    }
    exclusions = pl.Series(EXCLUSIONS, dtype=pl.String)
    columns |= {
        "advised": found.chosen,
        "probability": found.choice["probability"],
        "probability_error": found.choice.get("probability_error", np.zeros(found.number.size)),
        "exclusion": exclusions.gather(found.choice["exclusion"].astype(np.int64)),
        "would_act": found.choice["would_act"],
    }
    columns |= {name: found.choice[name] for name in ("shadow_chosen", "shadow_probability") if name in found.choice}
    done = pl.Series(found.done == DONE)
    after = pl.Series(np.where(found.after < 0, 0, found.after))
    known = pl.Series(found.done != UNKNOWN)
    came = pl.Series(found.after >= 0)
    frame = pl.DataFrame(columns)
    return frame.with_columns(
        done=pl.when(known).then(done),
        reward=pl.when(came).then(pl.Series(found.reward)),
        next_state=pl.when(came).then(states.gather(after)),
    )
