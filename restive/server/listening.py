"""What a server stands on: sockets, a certificate, and room for connections; what does not work is one sentence."""

import errno
import os
import socket
import ssl
from pathlib import Path

from restive.errors import InputError

BACKLOG = 1024
SPARE = 256  # files that are open beside connections


def bind(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen on all addresses of a host."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise InputError(f"{host}: there is no such address to listen on; use 127.0.0.1 or 0.0.0.0.") from None
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, address in dict.fromkeys(found):
            # All addresses of a host get the one port, also where 0 leaves it to the system.
            taken = sockets[0].getsockname()[1] if sockets else port
            sockets.append(socket.create_server((str(address[0]), taken), family=family, backlog=BACKLOG))
    except OSError as error:
        if not (sockets and error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)):
            for one in sockets:
                one.close()
            raise _explain(error, host, port) from None
    return sockets


def _explain(error: OSError, host: str, port: int) -> InputError:
    if error.errno == errno.EADDRINUSE:
        return InputError(
            f"port {port} of {host} is taken, perhaps by another `restive serve`; choose one with --port."
        )
    if error.errno == errno.EACCES:
        return InputError(f"port {port} of {host} may not be used by this user; name one from 1024 on by --port.")
    return InputError(f"cannot listen on {host}, port {port}: {error.strerror}.")


def load_tls(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """What TLS needs, if both files are named."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise InputError("TLS needs both --certificate and --key.")
    for file in (certificate, key):
        if not file.is_file() or not os.access(file, os.R_OK):
            raise InputError(f"{file}: there is no such file, or it may not be read.")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, password=lambda: b"")  # or a locked key would ask at the terminal
    except (ssl.SSLError, ValueError):
        raise InputError(f"{certificate} and {key}: no certificate and its key, both in PEM and not locked.") from None
    return context


def make_room(connections: int) -> int:
    """How many connections there may be; each is an open file, and the usual limit on those is low."""
    try:
        import resource
    except ImportError:  # not on Windows
        return min(connections, 512)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return connections if soft == resource.RLIM_INFINITY else max(min(connections, soft - SPARE), 16)
