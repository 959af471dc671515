"""The client: what other software uses to decide and to bring outcomes on a server of `restive serve`.

    from restive.client import Client, Refused

`Client` is a server, `Program` one of its programs, `Recommendation` a decided round. `Refused` is raised for whatever the
server did not do, with its sentence. It needs one more package: pip install "restive[client]".
"""

from restive.client.client import Client
from restive.client.program import Program, Recommendation
from restive.client.transport import Fault, Refused

__all__ = ["Client", "Fault", "Program", "Recommendation", "Refused"]
