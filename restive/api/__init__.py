"""The types of the HTTP API, shared by the desk, which fills them, the server and the client."""
