"""HTTP client of a server started by `restive serve`.

    from restive.client import APIError, AsyncClient, Client

`Client` is a server, `Program` one of its programs, `Recommendation` a decided round. `AsyncClient` and `AsyncProgram` are the
same with calls that are awaited. `APIError` is raised when the server refuses a request or does not answer. Needs httpx:
pip install "restive[client]".
"""

from restive.client.client import AsyncClient, Client
from restive.client.program import AsyncProgram, Program, Recommendation
from restive.client.transport import APIError

__all__ = ["APIError", "AsyncClient", "AsyncProgram", "Client", "Program", "Recommendation"]
