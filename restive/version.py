"""The version, in its own file so that every module can import it."""

__version__ = "0.1.0"
