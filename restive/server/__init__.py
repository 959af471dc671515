"""The server: an HTTP API for platforms and pages for program teams, over `restive.desk`.

The server has no logic of its own: it turns requests into calls of the desk, one at a time for each program. The app is
made by `restive.server.app.make_app`; importing the package does not import the web framework.
"""
