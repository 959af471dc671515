import resource
import socket
import subprocess
from pathlib import Path

import pytest

from restive.errors import InputError
from restive.server.listening import SPARE, bind, load_tls, make_room
from server.running import make_certificate


def test_all_addresses_of_a_host_are_listened_on_at_one_port() -> None:
    sockets = bind("localhost", 0)
    try:
        assert {one.getsockname()[0] for one in sockets} <= {"127.0.0.1", "::1"}
        assert len({one.getsockname()[1] for one in sockets}) == 1
    finally:
        for one in sockets:
            one.close()


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"^port {port} of 127.0.0.1 is taken, perhaps by another"):
            bind("127.0.0.1", port)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "999.1.1.1", "a" * 300])
def test_a_host_that_is_none_is_one_sentence(host: str) -> None:
    with pytest.raises(InputError, match="there is no such address to listen on"):
        bind(host, 0)


def test_an_address_of_another_machine_is_one_sentence() -> None:
    with pytest.raises(InputError, match=r"cannot listen on 192\.0\.2\.1"):
        bind("192.0.2.1", 0)


def test_tls_needs_both_files_and_they_must_belong_together(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    _, wrong = make_certificate(other)
    assert load_tls(None, None) is None
    assert load_tls(certificate, key) is not None
    with pytest.raises(InputError, match="needs both --certificate and --key"):
        load_tls(certificate, None)
    with pytest.raises(InputError, match="no certificate and its key"):
        load_tls(certificate, wrong)
    with pytest.raises(InputError, match="no such file"):
        load_tls(certificate, tmp_path / "missing.pem")


def test_a_locked_key_asks_nobody_at_the_terminal(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    locked = tmp_path / "locked.pem"
    command = ["openssl", "rsa", "-aes256", "-passout", "pass:hush", "-in", str(key), "-out", str(locked)]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(InputError, match="not locked"):
        load_tls(certificate, locked)


def test_room_for_connections_is_made_as_far_as_the_system_allows() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
        assert make_room(600) == 600
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 600 + SPARE
        assert make_room(10**9) == resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
