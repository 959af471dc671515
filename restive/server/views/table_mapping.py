"""How an uploaded table is read: what was understood, what is suggested, and what a form says about it.

The check page shows it with a choice for each column. Fields of the form: `column.agent` has a header, `text.0` and
`means.0` a text and the state that it means (- for none), `by_cuts` that numbers are amounts, `cut.0` ... cut points of
the column `cut.column`, `phone_country` a calling code, `display.0` ... headers that lists show. Only what differs from
what the program already knows is remembered. The first table of a program without display columns is read with those
that are suggested, which the check shows.
"""

import difflib
from collections.abc import Collection
from typing import Any

import numpy as np
import polars as pl

from restive.desk.config import Config
from restive.desk.display import check_display
from restive.desk.program import Program
from restive.desk.roster import MAX_ID
from restive.desk.table_columns import TEXTS, ColumnNames, Fault, TableColumns, TableError, accept, match_headers
from restive.desk.table_files import ROW
from restive.desk.table_mapping import MAX_COUNTRY, WORSE, fold, look_like_phones, normalize_header, spell_phones
from restive.desk.table_schema import OUTCOMES
from restive.desk.table_suggestions import suggest_columns, suggest_display
from restive.errors import InputError
from restive.server.views.base import Data
from restive.server.views.forms import Form, Table, read_decimal, read_whole

MAX_ROWS, MAX_SHOWN_COLUMNS, MAX_HEADERS, MAX_TEXTS = 5, 12, 200, 12
MAX_OFFERED = 24  # columns that lists can show
MAX_CUT_STATES = 12  # with more states, cut points are set by the command
MAX_SHOWN_CELL = 80  # characters
BARS = 24
LABELS = {"agent": "Id"}
REQUIRED = ("agent", "state")
STATE = {"states": "state", "outcomes": "next_state"}  # the column of states in a table of each kind
NO_STATE = "-"  # the choice of a text that means no state
BARE_NUMBER = r"^\d+(\.0)?$"
MAX_SHEETS = 8  # that are looked through for the columns of a program
WORSE_WORDS = {"since", "days", "ago", "recency", "overdue", "missed", "late"}


def columns_of(kind: str, config: Config) -> ColumnNames:
    """The columns of a table of states, or of outcomes."""
    return config.state_columns if kind == "states" else OUTCOMES


def read_mapping(program: Program, form: Form, table: Table | None, kind: str) -> dict[str, Any]:
    """How the form says that the table is read, where that differs from what the program knows."""
    if table is None:
        return {}
    config, given = program.config, dict[str, Any]()
    known = match_headers(table.file.frame, accept(columns_of(kind, config), config.mapping))
    chosen = {name.removeprefix("column."): form.text(name) for name in form.fields if name.startswith("column.")}
    cut = form.text("cut.column")
    if cut and chosen.get(STATE[kind], cut) == cut:
        limits = [read_decimal(form.text(f"cut.{place}")) for place in range(len(config.states) - 1)]
        wanted = {"column": cut, "at": limits, "more_is": form.text("cut.more_is")}
        given |= {} if _is_known(wanted, config) else {"cut_points": wanted}
    elif chosen.get(STATE[kind]) and config.cut_points and kind == "states":
        given["cut_points"], cut = None, ""
    columns = {name: header for name, header in chosen.items() if header != known.get(name, "") and header != cut}
    texts = {fold(form.text(f"text.{place}")): form.text(f"means.{place}") for place in range(MAX_TEXTS)}
    there = _texts_of(table.file.frame, chosen.get(STATE[kind]) or known.get(STATE[kind], ""))
    if form.checked("by_cuts") and not cut:
        texts = {}
    values = {
        text: state.removeprefix(NO_STATE) if state == NO_STATE else state
        for text, state in texts.items()
        if text in there and state
    }
    values = {text: state for text, state in values.items() if config.values.get(text) != state}
    given |= {"columns": columns} if columns else {}
    given |= {"values": values} if values else {}
    used = {header for header in ({**known, **chosen}).values() if header} | {cut}
    display = _read_display(program, form, table, used) if kind == "states" else []
    given |= {"display": display} if display else {}
    country = form.whole("phone_country", 1, MAX_COUNTRY)
    return given if country in (None, config.phone_country) else given | {"phone_country": country}


def _texts_of(frame: pl.DataFrame, header: str) -> set[str]:
    """The texts of a column, as they are compared; a text that is no longer in a corrected table means nothing."""
    if header not in frame.columns:
        return set()
    return {fold(text) for text in frame[header].cast(pl.String, strict=False).drop_nulls().unique()} - {""}


def _read_display(program: Program, form: Form, table: Table, used: Collection[str]) -> list[str]:
    """The headers that the form adds to lists; of the first table, before anybody was asked, those that are suggested."""
    frame, config = table.file.frame.drop(ROW, strict=False), program.config
    offered = _offer_display(frame, config, used)
    if form.checked("display.asked"):
        ticked = {form.text(f"display.{place}") for place in range(MAX_OFFERED)}
        return [header for header in offered if header in ticked]
    if program.rounds or config.display:
        return []
    return [header for header in suggest_display(frame, used) if header in offered]


def _offer_display(frame: pl.DataFrame, config: Config, used: Collection[str]) -> list[str]:
    """The headers that lists could show beside what they show already."""
    offered: list[str] = []
    if config.pseudonyms is not None:
        return offered
    for header in frame.columns[:MAX_HEADERS]:
        try:
            name = check_display([header])[0]
            check_display([*config.display, *offered, header])
        except InputError:  # the name of another column, or one too many
            continue
        if header not in used and name not in config.features and len(offered) < MAX_OFFERED:
            offered.append(header)
    return offered


def _is_known(wanted: dict[str, Any], config: Config) -> bool:
    """Whether these are the cut points of the program."""
    cut = config.cut_points
    same = cut is not None and normalize_header(cut.column) == normalize_header(wanted["column"])
    return same and cut is not None and (list(cut.at), cut.more_is) == (wanted["at"], wanted["more_is"])


def _read_as(program: Program, given: dict[str, Any]) -> Config:
    """The config with what a form says about the table, if that is valid."""
    try:
        return program.config.read_as({name: value for name, value in given.items() if name != "display"})
    except InputError:
        return program.config


def confirm_numbers(program: Program, table: Table | None, kind: str, given: dict[str, Any]) -> None:
    """Refuse numbers as states until somebody has said what they mean: 1 can be a state's number, or an amount."""
    if table is None:
        return
    config = _read_as(program, given)
    header = match_headers(table.file.frame, accept(columns_of(kind, config), config.mapping)).get(STATE[kind], "")
    cut = config.cut_points
    if not header or (cut is not None and normalize_header(cut.column) == normalize_header(header)):
        return
    cells = table.file.frame[header].cast(pl.String, strict=False)
    rows = table.file.frame[ROW] if ROW in table.file.frame.columns else range(1, len(cells) + 1)
    faults = [
        Fault(int(rows[cells.index_of(text) or 0]), header, f"{text!r} is a number, not the name of a state", TEXTS)
        for text in _find_bare(cells, config)
    ]
    if faults:
        raise TableError(table.name, faults, unclear=len(faults))


def _find_bare(cells: pl.Series, config: Config) -> list[str]:
    """The different numbers in a column of states that are neither states nor said to mean one."""
    if cells.dtype != pl.String:
        return []
    known = {*config.values, *(state.lower() for state in config.states)}
    texts = cells.drop_nulls().unique(maintain_order=True)
    return [text for text in texts.filter(texts.str.contains(BARE_NUMBER)).head(MAX_TEXTS) if fold(text) not in known]


def has_columns(program: Program, frame: pl.DataFrame, kind: str) -> bool:
    """Whether a table has the columns that the program knows."""
    config = program.config
    found = match_headers(frame, accept(columns_of(kind, config), config.mapping))
    return "agent" in found and STATE[kind] in found


def describe_reading(
    program: Program, table: Table, kind: str, given: dict[str, Any], refused: bool, by_cuts: bool = False
) -> Data:
    """What was read as what, with a choice for each column; `given` is what the form says.

    If the table was refused, columns that are not known are suggested.
    """
    file, states = table.file, program.config.states
    config = _read_as(program, given)
    frame, names = file.frame.drop(ROW, strict=False), columns_of(kind, config)
    found = match_headers(file.frame, accept(names, config.mapping))
    chosen = suggest_columns(list(names), frame, found, states) if refused else found
    state = chosen.get(STATE[kind], "")
    state = state or (_find_number(frame, chosen) if kind == "states" and refused else "")
    offered = _offer_display(frame, config, {*chosen.values(), state}) if kind == "states" else []
    shown = given.get("display", [])
    return {
        "name": table.name,
        "people": len(frame),
        "encoding": file.encoding,
        "delimiter": file.delimiter,
        "sheet": file.sheet,
        "sheets": list(file.sheets) if len(file.sheets) > 1 else [],
        "headers": frame.columns[:MAX_HEADERS],
        "columns": [
            {
                "name": name,
                "label": LABELS.get(name, name.replace("_", " ").capitalize()),
                "header": chosen.get(name, state if name == "state" else ""),
                "suggested": name not in found and (name in chosen or (name == "state" and state != "")),
                "required": name in REQUIRED,
            }
            for name in names
        ],
        "display": [{"header": header, "shown": header in shown} for header in offered],
        "shown": frame.columns[:MAX_SHOWN_COLUMNS],
        "rows": _show_cells(frame[:MAX_ROWS, :MAX_SHOWN_COLUMNS]),
        "states": list(states),
        **_describe_states(file.frame, state, config, by_cuts),
        "phones": _suggest_phones(program, frame, chosen.get("agent"), config),
    }


def _show_cells(frame: pl.DataFrame) -> list[tuple[str | None, ...]]:
    """The cells as texts, long ones cut."""
    return frame.select(pl.all().cast(pl.String, strict=False).str.slice(0, MAX_SHOWN_CELL)).rows()


def _find_number(frame: pl.DataFrame, chosen: dict[str, str]) -> str:
    """A column of numbers or dates from which the states can follow, if there is one alone."""
    free = [header for header in frame.columns if header not in chosen.values()]
    numbers = [header for header in free if not look_like_phones(frame[header]) and _numbers(frame, header) is not None]
    return numbers[0] if len(numbers) == 1 else ""


def _numbers(frame: pl.DataFrame, header: str) -> pl.Series | None:
    """The numbers of a column, or the days before today of its dates; None if it has others, or hardly any."""
    columns = TableColumns(frame, "", {"value": (normalize_header(header),)}, required=())
    columns.headers = {"value": header}
    numbers = columns.numbers("value", dates=True).drop_nulls()
    return numbers if not columns.total and numbers.n_unique() > 1 else None


def _describe_states(frame: pl.DataFrame, header: str, config: Config, by_cuts: bool = False) -> Data:
    """Texts of the column of states that mean none, and cut points with a histogram if it has numbers.

    Few different numbers are texts, such as codes, unless the form says otherwise.
    """
    cut = config.cut_points
    nothing: Data = {"texts": [], "cut": None, "may_cut": False}
    if not header:
        return nothing
    is_cut = cut is not None and normalize_header(cut.column) == normalize_header(header)
    numbers = _numbers(frame, header)
    if (
        numbers is not None
        and len(config.states) <= MAX_CUT_STATES
        and (is_cut or by_cuts or numbers.n_unique() > max(2, len(config.states)))
    ):
        limits = cut.at if cut is not None and is_cut else _suggest_limits(numbers, len(config.states) - 1)
        worse = cut.more_is == WORSE if cut is not None and is_cut else _is_worse(header)
        drawn = _draw(header, numbers, [float(limit) for limit in limits]) | {"worse": worse}
        return nothing | {"cut": drawn, "may_cut": by_cuts}
    columns = TableColumns(
        frame, "", {"state": (normalize_header(header),)}, (), mapping=config.mapping._replace(columns={})
    )
    codes, texts = columns.state_codes("state", config.states), columns.texts("state")
    unknown = codes.is_null() & (texts.str.len_chars() <= MAX_ID).fill_null(False)  # longer ones cannot be mapped
    wrong = texts.filter(unknown).unique(maintain_order=True).to_list()
    bare = _find_bare(texts, config)
    counts = dict(texts.drop_nulls().str.to_lowercase().value_counts().iter_rows())
    known = [text for text in config.values if text in counts]
    asked = list(dict.fromkeys(text for text in [*wrong, *bare] if fold(text) not in config.values))
    listed = [
        {
            "text": text,
            "rows": counts.get(text.lower(), 0),
            "known": fold(text) in config.values,
            "state": (config.values[text] or NO_STATE) if text in known else _near(text, config),
        }
        for text in [*asked, *known]
    ]
    return nothing | {"texts": listed[:MAX_TEXTS], "may_cut": bool(bare) and numbers is not None}


def _near(text: str, config: Config) -> str:
    """The state of which a text is probably a typo, or the number."""
    number = read_whole(text.removesuffix(".0"))
    if isinstance(number, int):
        return config.states[number] if 0 <= number < len(config.states) else ""
    states = {text: state for text, state in config.values.items() if state}
    states |= {state.lower(): state for state in config.states}
    found = difflib.get_close_matches(text.lower(), states, 1)
    return states[found[0]] if found else ""


def _suggest_limits(numbers: pl.Series, count: int) -> list[float]:
    """Limits that divide the numbers into classes of about the same size."""
    limits = [float(np.quantile(numbers.to_numpy(), (place + 1) / (count + 1))) for place in range(count)]
    return [float(f"{limit:.2g}") for limit in limits]


def _is_worse(header: str) -> bool:
    return bool(WORSE_WORDS & set(normalize_header(header).split("_")))


def _draw(header: str, numbers: pl.Series, limits: list[float]) -> Data:
    """A histogram as bars on an area of 100 by 100."""
    counts, edges = np.histogram(numbers.to_numpy(), BARS)
    low, high = float(edges[0]), float(edges[-1])
    lines = [100 * (limit - low) / ((high - low) or 1) for limit in limits]
    bars = [
        {
            "x": round(100 * place / BARS, 2),
            "width": round(100 / BARS * 0.9, 2),
            "height": round(100 * count / counts.max(), 2),
        }
        for place, count in enumerate(counts.tolist())
    ]
    inside = [round(line, 2) for line in lines if 0 <= line <= 100]
    return {"column": header, "bars": bars, "low": low, "high": high, "limits": limits, "lines": inside}


def _suggest_phones(program: Program, frame: pl.DataFrame, header: str | None, config: Config) -> Data | None:
    """Whether to ask if ids are phone numbers: before anybody joins."""
    if program.projection.agents.count or not header or not look_like_phones(frame[header]):
        return None
    given = frame[header].cast(pl.String, strict=False).drop_nulls().head(1)
    read = spell_phones(given, config.phone_country).to_list() if config.phone_country else []
    return {
        "country": config.phone_country,
        "given": given.to_list()[0] if read else "",
        "read": read[0] if read else "",
    }
