"""The command `restive serve` and the server as a process: options, socket, TLS, signals, an outage of the store."""

import asyncio
import os
import resource
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from desk.postgres import Postgres
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from restive.cli import app
from restive.desk import Desk
from restive.desk.tokens import make_token
from restive.errors import InputError
from restive.server import run
from restive.server.run import SPARE_FILES, check_exposure, listen, load_tls, reserve_files, start_messages
from restive.server.settings import Settings
from server.running import CLOSED, Command, make_certificate, read_all, run_server

BEYOND = Settings(host="0.0.0.0")


def test_a_server_on_this_machine_is_open_until_there_is_a_token() -> None:
    assert check_exposure(Settings(), tokens=False, tls=False).open
    assert not check_exposure(Settings(), tokens=True, tls=False).open


@pytest.mark.parametrize("settings", [BEYOND, replace(BEYOND, plain_http=True), Settings(behind_proxy=True)])
@pytest.mark.parametrize("tls", [False, True])
def test_nobody_beyond_this_machine_is_served_without_tokens(settings: Settings, tls: bool) -> None:
    with pytest.raises(InputError, match=r"its store has no token yet\. Make one with `restive desk token`"):
        check_exposure(settings, tokens=False, tls=tls)


def test_beyond_this_machine_tls_is_needed_unless_the_settings_allow_otherwise() -> None:
    with pytest.raises(InputError, match=r"would be sent unencrypted\. Use --certificate"):
        check_exposure(BEYOND, tokens=True, tls=False)
    assert check_exposure(BEYOND, tokens=True, tls=True).https
    for allowed in (replace(BEYOND, plain_http=True), replace(BEYOND, behind_proxy=True)):
        assert not check_exposure(allowed, tokens=True, tls=False).open


def test_the_start_messages_have_the_address_the_access_and_the_store() -> None:
    opened = [*start_messages(Settings(open=True), "a.db", "http://127.0.0.1:1")]
    assert opened[0] == "listening on http://127.0.0.1:1, for this machine only: the store has no token yet"
    assert opened[-1] == "the store is a.db; press Ctrl+C to stop"
    closed = [*start_messages(replace(BEYOND, plain_http=True), "a.db", "http://0.0.0.0:1")]
    assert closed[0] == "listening on http://0.0.0.0:1; a token is required"
    assert closed[1].startswith("without TLS")


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def test_it_creates_its_store_is_closed_by_the_first_token_and_stops_on_sigterm(store: str) -> None:
    with Command("--store", store) as command, httpx.Client(base_url=command.address(), timeout=60) as client:
        assert client.get("/health").status_code == 200
        assert client.get("/api/v1/me").json()["name"] == "local"
        with Desk(store) as desk:
            secret = make_token(desk.store, "ann", {None: "admin"})
        assert client.get("/api/v1/me").status_code == 401
        assert client.get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"}).json()["name"] == "ann"
        lines = [command.record() for _ in range(4)]
        command.tell(signal.SIGTERM)
        assert command.wait() == 0
    assert [(line["route"], line["status"]) for line in lines[1:]] == [
        ("/api/v1/me", 200 + each) for each in (0, 201, 0)
    ]
    assert secret not in "".join(command.said)


def test_the_demo_serves_a_program_and_shows_it_again(tmp_path: Path) -> None:
    start = ("-m", "restive", "demo", "--port", "0", "--no-browse", "--rounds", "2", "--agents", "20")
    for _ in range(2):
        with Command("--folder", str(tmp_path / "here"), start=start) as command:
            with httpx.Client(base_url=command.address(), timeout=60) as client:
                assert "pharmacists" in client.get("/").text
            command.tell(signal.SIGINT)
            assert command.wait() == 0
        assert "Ctrl-C ends the demo; the program stays in" in "".join(command.said)
    with Desk(str(tmp_path / "here" / "demo.db")) as desk:
        assert [program.name for program in desk.programs()] == ["pharmacists"]


def test_foreign_files_in_the_temporary_folder_do_not_matter(store: str, tmp_path: Path) -> None:
    place = tmp_path / "temporary"
    (place / "restive-old").mkdir(parents=True)
    for fifo in (place / "lock", place / "restive.lock", place / "restive-old" / "lock"):
        os.mkfifo(fifo)
    with Command("--store", store, environment={"TMPDIR": str(place)}) as command:
        assert httpx.get(f"{command.address()}/health", timeout=60).status_code == 200
        command.tell(signal.SIGTERM)
        assert command.wait() == 0


def test_a_killed_server_leaves_nothing_in_the_temporary_folder(store: str, tmp_path: Path) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    with Command("--store", store, environment={"TMPDIR": str(place)}) as command:
        address = httpx.URL(command.address())
        with socket.create_connection((address.host, address.port or 0)) as upload:
            head = b"POST /api/v1/programs/x/rounds HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n"
            upload.sendall(head + b"Content-Length: 100\r\n\r\nagent,state\n")
            wait_until(lambda: any(place.rglob("table*")))
            command.tell(signal.SIGKILL)
            command.wait()
            wait_until(lambda: not any(place.iterdir()))


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_serves_tls_and_stops_on_ctrl_c(store: str, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    with Desk(store) as desk:
        secret = make_token(desk.store, "ann", {None: "admin"})
    arguments = ("--store", store, "--certificate", str(certificate), "--key", str(key), "--log", "none")
    with Command(*arguments) as command:
        address = command.address()
        assert address.startswith("https://")
        context = ssl.create_default_context(cafile=str(certificate))
        with httpx.Client(base_url=address, verify=context, timeout=60) as client:
            answer = client.get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"})
        assert answer.status_code == 200
        assert "strict-transport-security" in answer.headers
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(address.replace("https", "http"), timeout=60)
        command.tell(signal.SIGINT)
        assert command.wait() == 0


class Slow:
    """An app whose work in a thread waits for an event."""

    def __init__(self) -> None:
        self.begun, self.go_on, self.done = threading.Event(), threading.Event(), threading.Event()
        self.threads = ThreadPoolExecutor(1)
        self.app = Starlette(routes=[Route("/", self.answer)])

    def work(self) -> None:
        self.begun.set()
        self.go_on.wait(30)
        self.done.set()

    async def answer(self, request: Request) -> Response:
        await asyncio.get_running_loop().run_in_executor(self.threads, self.work)
        return Response("done")


def test_requests_in_progress_are_finished_while_new_connections_are_refused() -> None:
    slow, answers = Slow(), []
    running = run_server(slow.app, CLOSED)
    place = running.__enter__()
    caller = threading.Thread(
        target=lambda: answers.append(httpx.get(f"http://{place[0]}:{place[1]}/", timeout=60).text)
    )
    ending = threading.Thread(target=running.__exit__, args=[None, None, None])
    with socket.create_connection(place, timeout=30) as idle:
        caller.start()
        assert slow.begun.wait(30)
        ending.start()
        assert read_all(idle) == b""
    assert not slow.done.is_set()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(place, timeout=30)
    slow.go_on.set()
    ending.join()
    caller.join()
    assert slow.done.is_set()
    assert answers == ["done"]
    slow.threads.shutdown()


def is_listening(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=30):
            return True
    except ConnectionRefusedError:
        return False
    except ConnectionError:  # just in between
        return True


def test_a_second_signal_ends_the_process_at_once(store: str) -> None:
    with Command("--store", store) as command:
        host, port = command.address().removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as caller:
            head = b"POST /api/v1/programs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            caller.sendall(head + b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n")
            assert caller.recv(100).startswith(b"HTTP/1.1 100 ")  # the request is in progress and waits for its body
            command.tell(signal.SIGTERM)
            while is_listening(host, int(port)):
                pass
            command.tell(signal.SIGTERM)
            assert command.wait() == 128 + signal.SIGTERM


def ask_until(client: httpx.Client, path: str, status: int) -> httpx.Response:
    deadline = time.monotonic() + 60
    while (answer := client.get(path)).status_code != status and time.monotonic() < deadline:
        pass
    return answer


def test_an_outage_of_the_store_is_reported_until_it_is_over() -> None:
    postgres = Postgres()
    try:
        postgres.start()
        arguments: tuple[str, ...] = ("--store", postgres.new_schema(), "--log", "none")
        with Command(*arguments) as command, httpx.Client(base_url=command.address(), timeout=60) as client:
            assert ask_until(client, "/ready", 200).status_code == 200
            postgres.stop("immediate")
            gone: Any = client.get("/api/v1/programs")
            assert gone.status_code == 503
            assert int(gone.headers["retry-after"]) > 0
            assert gone.json()["type"] == "/api#store_unavailable"
            assert client.get("/health").status_code == 200
            postgres.start()
            assert ask_until(client, "/api/v1/programs", 200).status_code == 200
            command.tell(signal.SIGTERM)
            assert command.wait() == 0
    finally:
        postgres.remove()


def serve_with(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Settings:
    """The settings with which the command would serve."""
    served: list[Settings] = []
    monkeypatch.setattr(run, "serve_desk", lambda desk, settings, *rest: served.append(settings))
    app(["serve", *arguments], standalone_mode=False)
    return served[0]


def test_options_come_from_a_file_then_the_environment_then_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "restive.toml"
    file.write_text(
        f'store = "{tmp_path / "team.db"}"\nport = 1\nrate = 7\nlog = "none"\ntrusted-proxy = ["10.0.0.0/8", "::1"]\n'
        "[limits]\nmax_connections = 99\nqueue_seconds = 5\n"
    )
    monkeypatch.setenv("RESTIVE_SERVE_PORT", "2")
    monkeypatch.setenv("RESTIVE_SERVE_RATE", "8")
    served = serve_with(monkeypatch, "--config", str(file), "--rate", "9")
    assert (served.port, served.rate, served.log) == (2, 9, "none")
    assert (served.trusted_proxies, served.behind_proxy) == (("10.0.0.0/8", "::1"), True)
    assert (served.max_connections, served.queue_seconds) == (99, 5)
    assert (tmp_path / "team.db").exists()
    monkeypatch.setenv("RESTIVE_SERVE_CONFIG", str(file))
    assert serve_with(monkeypatch).log == "none"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prt = 1", r"restive\.toml: there is no option 'prt'; did you mean 'port'\?"),
        ("limits = 1", r"limits is 1; it must be a table, \[limits\]\."),
        ("[limits]\nmax_connection = 1", "there is no limit 'max_connection'; did you mean 'max_connections'"),
        ("[limits]\nmax_connections = 0", "max_connections is 0; it must be a whole number from 1 on"),
        ('[limits]\nqueue_seconds = "x"', "queue_seconds is 'x'; it must be a number of seconds, above 0"),
        ("port", r"restive\.toml: it is not a TOML file"),
    ],
)
def test_a_wrong_configuration_file_is_refused_with_its_place(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "restive.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        serve_with(monkeypatch, "--config", str(file), "--store", str(tmp_path / "team.db"))


def test_a_port_in_use_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"^Port {port} of 127.0.0.1 is in use, perhaps by another"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "999.1.1.1", "a" * 300])
def test_an_unknown_host_is_an_error(host: str) -> None:
    with pytest.raises(InputError, match="is not an address to listen on"):
        listen(host, 0)


def test_an_address_of_another_machine_is_an_error() -> None:
    with pytest.raises(InputError, match=r"of 192\.0\.2\.1 cannot be listened on"):
        listen("192.0.2.1", 0)


def test_tls_needs_both_files_and_they_must_belong_together(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    _, wrong = make_certificate(other)
    assert load_tls(None, None) is None
    assert load_tls(certificate, key) is not None
    with pytest.raises(InputError, match="needs both --certificate and --key"):
        load_tls(certificate, None)
    with pytest.raises(InputError, match="are not a certificate and its unencrypted key"):
        load_tls(certificate, wrong)
    with pytest.raises(InputError, match="Cannot read"):
        load_tls(certificate, tmp_path / "missing.pem")


def test_an_encrypted_key_is_an_error_and_does_not_ask_for_a_password(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    locked = tmp_path / "locked.pem"
    command = ["openssl", "rsa", "-aes256", "-passout", "pass:hush", "-in", str(key), "-out", str(locked)]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(InputError, match="unencrypted key"):
        load_tls(certificate, locked)


def test_the_limit_on_open_files_is_raised_as_far_as_allowed() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
        assert reserve_files(600) == 600
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 600 + SPARE_FILES
        assert reserve_files(10**9) == resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE_FILES
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def find_error(**given: Any) -> str:
    """The message with which the command refuses to start the server."""
    options = [f"--{name.replace('_', '-')}={value}" for name, value in {"port": 0, **given}.items()]
    with pytest.raises(InputError) as error:
        app(["serve", *options], standalone_mode=False)
    return str(error.value)


def test_neither_the_command_line_nor_the_desk_imports_the_server() -> None:
    code = "import sys, restive.cli, restive.desk.desk; print(*{'fastapi', 'starlette', 'uvicorn'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


def test_without_the_packages_of_the_server_the_error_says_how_to_install_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "REQUIRED_PACKAGES", ("fastapi", "no_such_package"))
    assert find_error() == 'The server needs more packages: pip install "restive[server]".'


def test_the_command_refuses_a_port_in_use(store: str) -> None:
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
        ({"rate": float("-inf")}, "rate is -inf; it must be"),
        ({"rate": 1e300}, "rate is 1e+300; it must be"),
        ({"max_body": 0}, "--max-body is 0; it must be a whole number from 1 to 4096."),
        ({"log": "loud"}, "log is 'loud'; it must be one of text, json, none."),
        ({"trusted_proxy": "proxy"}, "'proxy' is not an address or network"),
        ({"certificate": Path("a.pem")}, "TLS needs both --certificate and --key."),
        ({"store": "table.csv"}, "a store is a file that ends in .db"),
    ],
)
def test_invalid_options_are_errors_and_create_no_store(given: dict[str, Any], message: str, store: str) -> None:
    assert message in find_error(**{"store": store, **given})
    assert not Path(store).exists()
