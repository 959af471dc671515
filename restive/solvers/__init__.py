"""What is known once the model is: greedy benefits, Whittle indices, the fluid bound, exact dynamic programming."""
