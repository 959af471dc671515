"""restive: who gets the one intervention there is budget for, every round, when everyone moves by themselves."""

__version__ = "0.1.0"
