"""Solvers for known models: one-step benefits, Whittle indices, fluid bounds, exact dynamic programming."""
