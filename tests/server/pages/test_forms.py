import pytest

from restive.errors import InputError
from restive.server.pages.forms import LONGEST_NAME, Form, plain_name, read_decimal, read_whole


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("../../etc/passwd.csv", "passwd.csv"),
        ("C:\\Users\\Ann\\states.xlsx", "states.xlsx"),
        ("a\x00b\r\n.csv", "ab.csv"),
        ("\u202egnp.csv", "gnp.csv"),
        ("", ""),
    ],
)
def test_a_file_is_called_by_its_last_name_alone(given: str, shown: str) -> None:
    assert plain_name(given) == shown


def test_a_long_name_is_cut_in_the_middle_and_keeps_its_ending() -> None:
    shown = plain_name("x" * 300 + ".parquet")
    assert len(shown) == LONGEST_NAME
    assert shown.endswith(".parquet")


def test_numbers_are_read_and_everything_else_is_left_to_the_desk() -> None:
    assert [read_whole(text) for text in ("7", "-7", "٧", "7.0", "9" * 400, "")] == [7, -7, "٧", "7.0", "9" * 400, ""]
    assert [read_decimal(text) for text in ("2,5", "2.5", "x", "1" * 400)] == [2.5, 2.5, "x", "1" * 400]


def test_a_number_is_refused_by_the_name_of_its_field() -> None:
    assert Form({"budget": " 12 "}).whole("budget", 0) == 12
    assert Form({}).whole("budget", 0) is None
    with pytest.raises(InputError, match=r"cool down is 'x'; it must be a whole number from 0 on"):
        Form({"cool_down": "x"}).whole("cool_down", 0)


def test_lines_are_ids_without_blanks_around_them() -> None:
    assert Form({"must": " ann \r\n\r\nben\n"}).ids("must") == ["ann", "ben"]
    assert Form({"must": " \n"}).ids("must") is None


def test_a_seal_depends_on_every_field_and_on_the_session() -> None:
    seals = {
        Form({"a": "1", "b": "2"}, secret="s").seal(["a", "b"]),
        Form({"a": "12", "b": ""}, secret="s").seal(["a", "b"]),
        Form({"a": "1", "b": "2"}, secret="t").seal(["a", "b"]),
        Form({"a": "1", "b": "2"}, secret="s").seal(["a"]),
    }
    assert len(seals) == 4
    assert Form({"a": "1", "csrf": "x", "key": "y"}).seal_all() == Form({"a": "1"}).seal_all()
