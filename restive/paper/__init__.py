"""The paper, experiment by experiment: what has to be done, who does it, and what is made of it."""
