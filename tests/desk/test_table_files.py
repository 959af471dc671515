"""Table files: what is written is read back, rows are numbered as a person sees them, and bad files give clear errors."""

import csv
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restive.desk import table_files
from restive.desk.table_files import (
    ROW,
    check_output_file,
    escape_formulas,
    open_table_file,
    read_table_file,
    unescape_formulas,
    write_table_file,
)
from restive.errors import Hint, InputError

QUICK = settings(max_examples=80, derandomize=True, deadline=None, database=None)
TRICKY = [
    "=1+1",
    "+1",
    "-1",
    "@x",
    "\tx",
    "\rx",
    "'=x",
    "''-",
    "'plain",
    'say "hi"',
    "a,b;c\td",
    "two\nlines",
    "a\r\nb",
]
TEXTS = st.one_of(
    st.none(),
    st.sampled_from([*TRICKY, "007", "1e5", "José", "ß😀", "_x0041_", "true", "2026-01-02"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufffe\uffff"), min_size=1, max_size=8),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sheets")


def read_text(folder: Path, content: str | bytes, name: str = "monday.csv") -> pl.DataFrame:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_table_file(path)


def refusal(folder: Path, content: str | bytes, name: str = "monday.csv") -> str:
    with pytest.raises(InputError) as refused:
        read_text(folder, content, name)
    return str(refused.value)


@pytest.mark.parametrize(
    "content",
    [
        "agent,state\n007,high\nb,\n",
        "\ufeffagent,state\n007,high\nb,\n",
        "agent;state\r\n007;high\r\nb;\r\n",
        "agent\tstate\n007\thigh\nb",
        "agent,state\r007,high\rb,\r",
        '"agent","state"\n"007","high"\n"b",""\n',
        "agent,state,\n007,high,\nb\n",
    ],
)
def test_every_csv_dialect_gives_the_same_table(folder: Path, content: str) -> None:
    sheet = read_text(folder, content)
    assert sheet.columns == [ROW, "agent", "state"]
    assert sheet.rows() == [(2, "007", "high"), (3, "b", None)]


def test_rows_are_numbered_as_a_person_sees_them(folder: Path) -> None:
    content = '\nagent,note\n\na,"two\nlines"\n , \nb,x\n,\nc,y\n'
    assert read_text(folder, content)[ROW].to_list() == [4, 6, 8]
    assert read_text(folder, content.replace('"two\nlines"', "one"))[ROW].to_list() == [4, 6, 8]


def test_repeated_empty_or_reserved_headers_get_unique_names(folder: Path) -> None:
    sheet = read_text(folder, "agent,agent,,row, agent ,\na,b,c,d,e,\n")
    assert sheet.columns == [ROW, "agent", "agent (2)", "column 3", "row (2)", "agent (3)"]
    assert sheet.row(0) == (2, "a", "b", "c", "d", "e")


def test_a_single_column_uses_the_default_delimiter_of_its_extension(folder: Path) -> None:
    assert read_text(folder, "agent\na,b\n", "monday.tsv").rows() == [(2, "a,b")]
    assert read_text(folder, "agent\na;b\n").rows() == [(2, "a;b")]


@pytest.mark.parametrize(
    ("codec", "encoding"),
    [("utf-8", "UTF-8"), ("utf-8-sig", "UTF-8"), ("utf-16", "UTF-16"), ("utf-16-le", "UTF-16"), ("utf-16-be", "UTF-16"),
     ("cp1252", "Windows-1252")],
)  # fmt: skip
def test_the_encoding_of_a_csv_is_recognized_and_noted(folder: Path, codec: str, encoding: str) -> None:
    path = folder / f"{codec}.csv"
    path.write_bytes("agent;state\nJosé;aktiv\nZoë – 3 €;aktiv\n".encode(codec))
    read = open_table_file(path)
    assert read.frame["agent"].to_list() == ["José", "Zoë – 3 €"]
    assert (read.encoding, read.delimiter) == (encoding, "a semicolon")
    assert read.notes() == ([] if encoding == "UTF-8" else [f"read as {encoding}"])


def test_a_header_alone_is_a_table_without_rows(folder: Path) -> None:
    assert read_text(folder, "agent,state\n").shape == (0, 3)


def test_the_delimiter_is_found_outside_quotes(folder: Path) -> None:
    assert read_text(folder, '"a,b,c";state\nx;1,5\n').rows() == [(2, "x", "1,5")]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "monday.csv: the file is empty."),
        (b"\n \n,,\n", "monday.csv: the file has no rows; the first row must name the columns."),
        (b"\xef\xbb\xbf", "monday.csv: the file has no rows; the first row must name the columns."),
        (
            b"a,b\n1,2\n3,4,5\n",
            "monday.csv, row 3: 3 cells, but the header has 2; a text that contains a comma must",
        ),
        (
            b"a;b\n\n3;4;5\n",
            "monday.csv, row 3: 3 cells, but the header has 2; a text that contains a semicolon must",
        ),
        (b'a,b\n1,2\n3,"x\n5,6\n', "monday.csv, row 3: a quote is not closed, or text follows it"),
        (b'a,b\n1,2\n3,"""  ""', "monday.csv, row 3: a quote is not closed, or text follows it"),
        (b'a,b\n1,"x"y\n', "monday.csv, row 2: a quote is not closed, or text follows it"),
        (b"a,b\n1,2\nJos\x81,4\n", "monday.csv, row 3: the text is neither UTF-8 nor Windows-1252; save the file as"),
        ("a,b\n1,Анна\n".encode("cp1251"), "monday.csv, row 2: the text is neither UTF-8 nor Windows-1252"),
        ("a,b\nJosé,Zoë\n".encode() + b"\xe9\n", "monday.csv, row 3: the text is neither UTF-8 nor Windows-1252"),
    ],
)
def test_a_csv_that_cannot_be_read_is_refused_with_its_row(folder: Path, content: bytes, sentence: str) -> None:
    assert refusal(folder, content).startswith(sentence)


def test_rows_far_down_are_counted(folder: Path) -> None:
    lines = ['"agent",state', *["a,b"] * 20_005]
    assert read_text(folder, "\n".join(lines))[ROW].to_list() == list(range(2, 20_007))
    assert f"row {len(lines) + 1}:" in refusal(folder, "\n".join([*lines, "a,b,c"]))
    assert f"row {len(lines) + 1}:" in refusal(folder, "\n".join([*lines, 'a,"b']))


def outcome(read: Callable[[], pl.DataFrame]) -> list[tuple[object, ...]] | str:
    """The rows, or what is said instead."""
    try:
        return table_files._with_header(read(), "x").rows()
    except InputError as error:
        return str(error)


@QUICK
@given(st.text(st.sampled_from("ab,;\n\t '=é"), max_size=30))
def test_both_csv_readers_agree(text: str) -> None:
    separator = table_files._find_delimiter(text, ",")
    quick = outcome(lambda: table_files._read_csv(text, "x", separator))
    assert quick == outcome(lambda: table_files._read_csv_rows(text, separator, "x"))


@pytest.mark.parametrize("ending", ["csv", "tsv", "txt", "xlsx", "parquet"])
@QUICK
@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=5), st.integers(1, 2))
def test_texts_come_back_exactly(folder: Path, ending: str, rows: list[tuple[str | None, ...]], width: int) -> None:
    rows = [row[:width] for row in rows if any(cell and cell.strip() for cell in row[:width])]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(["agent", "note"][:width], pl.String), orient="row")
    path = folder / f"there.{ending}"
    write_table_file(frame, path)
    assert read_table_file(path).drop(ROW).rows() == frame.rows()


def test_formulas_are_escaped_in_csv(tmp_path: Path) -> None:
    write_table_file(
        pl.DataFrame({"=agent": ["=1+1", "@x", "-1", "'=x", "a"], "x": [-1, 2, 3, 4, 5]}), tmp_path / "a.csv"
    )
    assert (tmp_path / "a.csv").read_text() == "'=agent,x\n'=1+1,-1\n'@x,2\n'-1,3\n''=x,4\na,5\n"
    assert read_table_file(tmp_path / "a.csv").columns == [ROW, "=agent", "x"]


SPLITTING = {
    "x;=cmd|' /C calc'!A0;y": "x;'=cmd|' /C calc'!A0;y",
    "x,+1": "x,'+1",
    "x;;-1": "x;;'-1",
    'x;"=1"': 'x;\'"=1"',
    "x; \t=1": "x; \t'=1",
    "x\r\n@y": "x\r\n'@y",
    "＝1": "'＝1",
    "＋1;－2": "'＋1;'－2",
    "＠x": "'＠x",
    "\t=1": "'\t'=1",
    "'=1": "''=1",
    "a;'=1": "a;''=1",
    "a;b-c": "a;b-c",
}


@pytest.mark.parametrize("ending", ["csv", "tsv", "txt"])
def test_no_part_of_a_text_is_a_formula_whatever_the_delimiter(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    texts = pl.DataFrame({"rank": [str(rank) for rank in range(len(SPLITTING))], "agent": list(SPLITTING)})
    write_table_file(texts, path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        written = [row[1] for row in csv.reader(file, delimiter="," if ending == "csv" else "\t")][1:]
    assert written == list(SPLITTING.values())
    assert read_table_file(path)["agent"].to_list() == list(SPLITTING)
    for delimiter in ",;\t":
        for line in path.read_text(encoding="utf-8-sig").splitlines():
            cells = [cell.lstrip('" ') for cell in line.split(delimiter)]
            assert not [cell for cell in cells if cell[:1] in {*"=+-@＝＋－＠"}], line


@given(st.lists(st.text("'\"=+-@＝;,\t\r\n ab", min_size=1, max_size=12), min_size=1, max_size=5))
def test_escaped_formulas_are_read_back_exactly(texts: list[str]) -> None:
    column = pl.DataFrame({"text": texts})
    written = column.select(escape_formulas(pl.col("text")))
    assert written.select(unescape_formulas(pl.col("text")))["text"].to_list() == texts


def test_a_byte_order_mark_is_written_only_where_excel_needs_it(tmp_path: Path) -> None:
    for name, begin in (("ann", b"agent"), ("josé", b"\xef\xbb\xbfagent")):
        write_table_file(pl.DataFrame({"agent": [name]}), tmp_path / "a.csv")
        assert (tmp_path / "a.csv").read_bytes().startswith(begin)


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_numbers_dates_and_truth_become_plain_text(tmp_path: Path, ending: str) -> None:
    columns = {"whole": [7, None], "real": [0.1, 2.5], "day": [date(2026, 1, 2), None], "done": [True, False]}
    write_table_file(pl.DataFrame(columns), tmp_path / f"a.{ending}")
    rows = read_table_file(tmp_path / f"a.{ending}").rows()
    assert rows == [(2, "7", "0.1", "2026-01-02", "true"), (3, None, "2.5", None, "false")]


def test_parquet_keeps_types_and_counts_rows_from_one(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"agent": [7, 8], "state": pl.Series(["low", None], dtype=pl.Categorical), "reward": [0.5, 1.0]}
    )
    write_table_file(frame, tmp_path / "a.parquet")
    sheet = read_table_file(tmp_path / "a.parquet")
    assert sheet.drop(ROW).equals(frame)
    assert sheet[ROW].to_list() == [1, 2]


def test_nested_columns_are_refused_for_reading_and_writing(tmp_path: Path) -> None:
    frame = pl.DataFrame({"agent": ["a"], "state": [[1, 2]]})
    with pytest.raises(InputError, match=r"a\.csv, column state: it holds List"):
        write_table_file(frame, tmp_path / "a.csv")
    frame.write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet, column state: it holds List"):
        read_table_file(tmp_path / "a.parquet")


def test_parquet_of_too_many_rows_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_table_file(pl.DataFrame({"agent": range(101)}), tmp_path / "a.parquet")
    monkeypatch.setattr(table_files, "MAX_CELLS", 100)
    with pytest.raises(InputError, match="101 rows are more than can be read at once"):
        read_table_file(tmp_path / "a.parquet")


def test_other_extensions_are_refused_for_reading_and_writing(tmp_path: Path) -> None:
    for name in ("a.xls", "a.ods", "a.pdf", "a"):
        with pytest.raises(InputError, match=r"cannot read files that end in .*; save it as \.csv, \.tsv"):
            read_table_file(tmp_path / name)
        with pytest.raises(InputError, match=r"cannot write files that end in"):
            write_table_file(pl.DataFrame({"agent": ["a"]}), tmp_path / name)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    write_table_file(pl.DataFrame({"agent": ["old"]}), path)
    with pytest.raises(InputError, match="32767 characters"):
        write_table_file(pl.DataFrame({"agent": ["x" * 40_000]}), path)
    assert read_table_file(path)["agent"].to_list() == ["old"]
    assert [file.name for file in tmp_path.iterdir()] == ["a.xlsx"]


@pytest.mark.parametrize("ending", ["csv", "tsv", "txt", "xlsx", "parquet"])
@QUICK
@given(st.one_of(st.binary(max_size=60), st.text(st.sampled_from("ab\",;\n\r\t\0'é"), max_size=40).map(str.encode)))
def test_rubbish_with_any_extension_is_a_table_or_an_input_error(folder: Path, ending: str, content: bytes) -> None:
    for begin in (b"", {"xlsx": b"PK\x03\x04", "parquet": b"PAR1"}.get(ending, b"agent,state\n")):
        (folder / f"rubbish.{ending}").write_bytes(begin + content + begin)
        with suppress(InputError):
            assert read_table_file(folder / f"rubbish.{ending}").columns[0] == ROW


def test_a_truncated_parquet_file_is_refused(tmp_path: Path) -> None:
    write_table_file(pl.DataFrame({"agent": ["a", "b"], "state": [1, 2]}), tmp_path / "a.parquet")
    content = (tmp_path / "a.parquet").read_bytes()
    for length in range(1, len(content), 37):
        assert refusal(tmp_path, content[:length], "b.parquet").startswith(
            "b.parquet: the file is damaged or is not a Parquet file"
        )


def test_an_existing_output_file_is_refused_unless_it_may_be_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "new" / "list.csv"
    check_output_file(file)
    assert (file.parent.is_dir(), file.exists()) == (True, False)
    file.write_text("results")
    with pytest.raises(InputError, match=r"list\.csv already exists\.$") as refused:
        check_output_file(file)
    assert refused.value.hint == Hint.OVERWRITE
    check_output_file(file, overwrite=True)
    assert file.read_text() == "results"
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match=r"folder\.csv is a folder"):
        check_output_file(tmp_path / "folder.csv", overwrite=True)
    with pytest.raises(InputError, match=r"cannot write files that end in '\.pdf'"):
        check_output_file(tmp_path / "list.pdf", overwrite=True)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_of_too_many_columns_is_refused_before_it_is_read(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"wide.{ending}"
    frame = pl.DataFrame({f"c{place}": ["x"] for place in range(2001)})
    frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)
    with pytest.raises(InputError, match=rf"wide\.{ending}: it has 2,001 columns; at most 2,000 are allowed"):
        read_table_file(path)


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
def test_a_long_header_is_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"long.{ending}"
    write_table_file(pl.DataFrame({"agent": ["ann"], "h" * 201: ["x"]}), path)
    with pytest.raises(InputError, match=rf"long\.{ending}: the header 'h{{40}}…' is longer than 200 characters\."):
        read_table_file(path)


def test_a_thousand_repeated_headers_get_unique_names(tmp_path: Path) -> None:
    path = tmp_path / "same.csv"
    path.write_text(",".join(["a", "a (2)", *["a"] * 1000]) + "\n" + ",".join("x" * 1002) + "\n")
    names = read_table_file(path).columns[1:]
    assert (len(set(names)), names[:4]) == (1002, ["a", "a (2)", "a (3)", "a (4)"])


@pytest.mark.parametrize("text", ["ann", "José"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_a_table_in_parts_is_written_as_a_whole_one(tmp_path: Path, ending: str, text: str) -> None:
    frame = pl.DataFrame({"agent": [f"{text}{n}" for n in range(9)], "note": [*["=1"] * 3, *[None] * 6]})
    write_table_file(frame, tmp_path / f"whole.{ending}")
    write_table_file((frame[start : start + 4] for start in (0, 4, 8)), tmp_path / f"parts.{ending}")
    assert read_table_file(tmp_path / f"parts.{ending}").equals(read_table_file(tmp_path / f"whole.{ending}"))
    if ending == "csv":
        assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
