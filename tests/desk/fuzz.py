"""Tables with faults of every kind in their cells, headers and bytes: recorded or refused with a sentence, and nothing else."""

import csv
import io
from collections import Counter
from pathlib import Path

import numpy as np

from restive.desk import Desk, Program
from restive.desk.replay import replay
from restive.errors import InputError

MAX_ROWS = 4000
HEADERS = {
    "states": ("agent", "state", "phone", "group"),
    "outcomes": ("agent", "done", "next_state", "reward", "round", "note"),
}
STRANGE = (
    "", " ", "\t", "\0", "NaN", "null", "None", "-1", "1e999", "-0", "0x10", "1,5", "1.5", "TRUE", "ja", "=1+1", "@SUM(A1)",
    '"', '""', "'", ";", ",", "\n", "\r\n", "\ufeff", "\u202e", "\u200b", "é", "é", "𝟙", "😀", "x" * 5000, "9" * 40, "2024-02-30",
    "+49 30 1", "low\n", " low", "LOW", "Low ", "p0001 ", "P0001", "0001", "p1", "\\N", "#REF!", "../x", "%00", "{}", "[]",
)  # fmt: skip
VALID = {
    "state": ("low", "high", "0", "1"), "next_state": ("low", "high", "0", "1", ""), "done": ("true", "false", "1", "0", ""),
    "reward": ("", "0", "1", "0.5"), "round": ("", "1"), "phone": ("", "+49 30 5"), "group": ("", "north", "south"),
    "note": ("", "busy"),
}  # fmt: skip


def make_table(kind: str, generator: np.random.Generator) -> tuple[bytes, int]:
    """A CSV file with between no fault and one in each cell, and its number of rows."""
    rows, faults = int(generator.integers(1, MAX_ROWS)), float(generator.choice([0, 0, 1e-4, 1e-2, 0.5]))
    header = [name for name in HEADERS[kind] if name in ("agent", "state") or generator.random() < 0.7]
    cells = [[_cell(name, row, faults, generator) for name in header] for row in range(rows)]
    header = [str(generator.choice(STRANGE)) if generator.random() < faults else name for name in header]
    text = io.StringIO()
    writer = csv.writer(text, delimiter=str(generator.choice([",", ";", "\t"])))
    writer.writerow(header)
    writer.writerows(cells)
    content = bytearray(text.getvalue().encode(str(generator.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"]))))
    if generator.random() < 0.1:
        for place in generator.integers(len(content), size=3):
            content[place] = int(generator.integers(256))
    return bytes(content), rows


def _cell(name: str, row: int, faults: float, generator: np.random.Generator) -> str:
    if generator.random() < faults:
        return STRANGE[int(generator.integers(len(STRANGE)))]
    if name == "agent":
        return f"p{row:04}"
    return VALID[name][int(generator.integers(len(VALID[name])))]


def use_table(program: Program, kind: str, file: Path, generator: np.random.Generator) -> bool:
    """Whether a table is recorded; a refusal is a sentence and changes nothing."""
    length, dry_run, refusal = program.store.length(program.id), bool(generator.random() < 0.5), ""
    try:
        if kind == "states":
            program.decide(file, again=True, new=True, dry_run=dry_run)
        else:
            program.learn(file, correct=bool(generator.random() < 0.5), dry_run=dry_run)
    except InputError as error:
        refusal = str(error).strip() or "nothing"
    assert refusal != "nothing"
    grown = program.store.length(program.id) - length
    assert grown == 0 if refusal or dry_run else grown > 0 or kind == "outcomes"  # outcomes may repeat what is known
    return not refusal


def check_rows(folder: Path, rows: int, seed: int) -> Counter[str]:
    """Give a program tables until they have had so many rows."""
    generator, total, file = np.random.default_rng(seed), Counter[str](), folder / "fuzz.csv"
    with Desk(folder / f"fuzz{seed}.db") as desk:
        program = desk.create(
            "fuzz", states=["low", "high"], rewards=[0, 1], budget=5, policy="egt", display=["phone"], control=0
        )
        while total["rows"] < rows:
            kind = "outcomes" if program.rounds and generator.random() < 0.5 else "states"
            content, size = make_table(kind, generator)
            file.write_bytes(content)
            taken = use_table(program, kind, file, generator)
            total.update(rows=size, tables=1, accepted=taken, refused=not taken)
        assert replay(program).proven
    return total
