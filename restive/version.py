"""The version, in a file of its own so that everything may import it."""

__version__ = "0.1.0"
