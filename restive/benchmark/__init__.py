"""The benchmark: all online policies on the same scenarios, ranked, with what a step of each costs."""
