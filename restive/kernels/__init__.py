"""Compiled loops over plain arrays that every policy and solver shares: randomness, choose, advance."""
