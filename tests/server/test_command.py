import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from restive.desk import Desk
from restive.desk.tokens import make_token
from restive.errors import InputError
from restive.server import command


def refusal(**given: Any) -> str:
    """Why the server was not begun."""
    with pytest.raises(InputError) as error:
        command.serve(**{"port": 0, **given})
    return str(error.value)


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def test_neither_the_command_line_nor_the_desk_loads_the_server() -> None:
    code = "import sys, restive.cli, restive.desk.desk; print(*{'fastapi', 'starlette', 'uvicorn'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


def test_without_the_packages_of_the_server_it_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "NEEDED", ("fastapi", "no_such_package"))
    with pytest.raises(InputError) as error:
        command.serve()
    assert str(error.value) == 'The server needs a few more packages: pip install "restive[server]".'


def test_a_port_that_is_taken_is_one_sentence(store: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refusal(store=store, port=port).startswith(f"port {port} of 127.0.0.1 is taken")


def test_listening_beyond_this_machine_needs_a_token_and_then_tls(store: str) -> None:
    assert "has no token yet" in refusal(store=store, host="0.0.0.0")
    with Desk(store) as desk:
        make_token(desk.store, "ann", {None: "admin"})
    assert "in the clear" in refusal(store=store, host="0.0.0.0")
    assert "no address of a proxy" in refusal(store=store, host="0.0.0.0", forwarded_allow=["proxy"])


def test_a_store_that_does_not_answer_is_one_sentence_without_its_password() -> None:
    said = refusal(store="postgresql://nobody:hush@127.0.0.1:1/none")
    assert "no server answers there" in said
    assert "hush" not in said


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"rate": 0.0}, "rate is 0.0; it must be"),
        ({"largest_body": 0}, "--largest-body is 0; it must be a whole number from 1 to 4096."),
        ({"log": "loud"}, "log is 'loud'; it must be one of text, json, none."),
        ({"certificate": Path("a.pem")}, "TLS needs both --certificate and --key."),
        ({"store": "table.csv"}, "a store is a file that ends in .db"),
    ],
)
def test_options_that_make_no_sense_are_one_sentence_and_leave_no_store(
    given: dict[str, Any], sentence: str, store: str
) -> None:
    assert sentence in refusal(**{"store": store, **given})
    assert not Path(store).exists()
