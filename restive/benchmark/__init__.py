"""All online policies on the same fields: what is played, who is ahead, what it costs, and what is told of it."""
