"""Where a history comes from: a file, a frame, the folder of an export, or a program of the desk."""

from dataclasses import replace
from os import PathLike
from pathlib import Path

import polars as pl

from restive.desk.events import EXCLUSIONS, IN_CONTROL
from restive.desk.export import agents_table, records_table
from restive.desk.features import decode
from restive.desk.program import Program
from restive.desk.roster import ERASED
from restive.desk.table_files import as_frame
from restive.errors import InputError, NotFound
from restive.logs.options import ReadOptions

PROGRAM = "program:"
RECORD_COLUMNS = {"round": "time", "done": "action", "probability": "propensity"}
NOT_READ = ("number", "carried_over", "exclusion", "probability_error", "shadow_chosen", "shadow_probability")
AGENT_TOTALS = ("agent", "active", "state", "rounds_seen", "reward_total")


def open_source(
    source: object, options: ReadOptions, store: str | None = None
) -> tuple[pl.DataFrame, str, ReadOptions]:
    """The table of a source, what messages call it, and the options, with those that the source knows itself."""
    if isinstance(source, Program):
        return _read_program(source, options)
    if isinstance(source, str) and source.startswith(PROGRAM):
        from restive.desk.desk import open_desk

        with open_desk(store) as desk:
            return _read_program(desk.program(source.removeprefix(PROGRAM)), options)
    if isinstance(source, str | PathLike):
        path = Path(source)
        if path.is_dir():
            return as_frame(_read_export(path)), path.name, options
        if not path.exists() and "#" not in path.name:
            raise NotFound(f"File not found: {path}. A program of the desk is named {PROGRAM}NAME.")
        return as_frame(source), path.name, options
    return as_frame(source), "history", options


def _read_program(program: Program, options: ReadOptions) -> tuple[pl.DataFrame, str, ReadOptions]:
    config = program.config
    rounds = [records_table(program, program.cache.get_round(line.round)) for line in program.rounds]
    if not rounds:
        raise InputError(f"Program {program.name!r} has no rounds yet.")
    features = decode(program.projection.agents.features, config.features)
    agents = agents_table(program).with_columns(pl.Series(name, values) for name, values in features.items())
    rewards = options.rewards or dict(zip(config.states, config.rewards or (), strict=False))
    known = replace(options, states=options.states or config.states, rewards=rewards)
    return as_frame(_join(pl.concat(rounds, how="diagonal_relaxed"), agents)), f"program {program.name}", known


def _read_export(folder: Path) -> pl.DataFrame:
    """The table in a folder that `restive desk export` wrote."""
    if not (folder / "agents.parquet").exists() or not (folder / "records").is_dir():
        raise InputError(f"{folder} is not an export of a program: it has no agents.parquet and records.")
    files = sorted((folder / "records").glob("round-*.parquet"))
    if not files:
        raise InputError(f"{folder} is the export of a program without rounds.")
    records = pl.concat(map(pl.read_parquet, files), how="diagonal_relaxed")
    return _join(records, pl.read_parquet(folder / "agents.parquet"))


def _join(records: pl.DataFrame, agents: pl.DataFrame) -> pl.DataFrame:
    """Records of rounds as a history: who was advised with what probability, what was done; erased agents by number.

    Nobody has an arm in the rounds after a waiting list, in which people of the control group are not kept off the list.
    """
    people = agents.drop(AGENT_TOTALS).with_columns(arm=pl.col("control").not_().cast(pl.Int8)).drop("control")
    unnamed = pl.format("{} {}", pl.lit(ERASED), pl.col("number"))
    named = records.with_columns(agent=pl.when(pl.col("agent") == ERASED).then(unnamed).otherwise("agent"))
    joined = named.join(people, on="number", how="left", maintain_order="left")
    joins = ((pl.col("arm") == 0) & (pl.col("exclusion") != EXCLUSIONS[IN_CONTROL])).any().over("round")
    joined = joined.with_columns(arm=pl.when(~joins).then("arm"))
    return joined.drop(NOT_READ, strict=False).rename(RECORD_COLUMNS)
