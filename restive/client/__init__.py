"""HTTP client of a server started by `restive serve`.

    from restive.client import APIError, Client

`Client` is a server, `Program` one of its programs, `Recommendation` a decided round. `APIError` is raised when the
server refuses a request or does not answer. Needs httpx: pip install "restive[client]".
"""

from restive.client.client import Client, Program, Recommendation
from restive.client.transport import APIError

__all__ = ["APIError", "Client", "Program", "Recommendation"]
