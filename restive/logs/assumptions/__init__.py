"""The assumptions behind a model of a history, one module for each group of questions that `examine` asks."""
