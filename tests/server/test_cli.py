import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from restive.desk import Desk
from restive.desk.tokens import make_token
from restive.errors import InputError
from restive.server import cli


def find_error(**given: Any) -> str:
    """The message with which the command refuses to start the server."""
    with pytest.raises(InputError) as error:
        cli.serve(**{"port": 0, **given})
    return str(error.value)


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def test_neither_the_command_line_nor_the_desk_imports_the_server() -> None:
    code = "import sys, restive.cli, restive.desk.desk; print(*{'fastapi', 'starlette', 'uvicorn'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


def test_without_the_packages_of_the_server_the_error_says_how_to_install_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "REQUIRED_PACKAGES", ("fastapi", "no_such_package"))
    assert find_error() == 'The server needs more packages: pip install "restive[server]".'


def test_a_port_in_use_is_an_error(store: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert find_error(store=store, port=port).startswith(f"Port {port} of 127.0.0.1 is in use")


def test_listening_beyond_this_machine_needs_a_token_and_then_tls(store: str) -> None:
    assert "has no token yet" in find_error(store=store, host="0.0.0.0")
    with Desk(store) as desk:
        make_token(desk.store, "ann", {None: "admin"})
    assert "unencrypted" in find_error(store=store, host="0.0.0.0")


def test_a_store_that_does_not_answer_is_an_error_without_its_password() -> None:
    message = find_error(store="postgresql://nobody:hush@127.0.0.1:1/none")
    assert "127.0.0.1" in message
    assert "hush" not in message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rate": 0.0}, "rate is 0.0; it must be"),
        ({"rate": float("nan")}, "rate is nan; it must be"),
        ({"rate": float("inf")}, "rate is inf; it must be"),
        ({"max_body": 0}, "--max-body is 0; it must be a whole number from 1 to 4096."),
        ({"log": "loud"}, "log is 'loud'; it must be one of text, json, none."),
        ({"trusted_proxy": ["proxy"]}, "'proxy' is not a proxy address"),
        ({"certificate": Path("a.pem")}, "TLS needs both --certificate and --key."),
        ({"store": "table.csv"}, "a store is a file that ends in .db"),
    ],
)
def test_invalid_options_are_errors_and_create_no_store(given: dict[str, Any], message: str, store: str) -> None:
    assert message in find_error(**{"store": store, **given})
    assert not Path(store).exists()
