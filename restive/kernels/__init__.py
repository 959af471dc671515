"""Compiled loops over plain arrays, shared by policies and solvers: random numbers, selection, transitions, priors."""
