"""From logs: a history of people, states and actions, and what it says about a program that does not exist yet."""
