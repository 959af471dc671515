"""The nine questions that `examine` asks about a history."""

from restive.logs.assumptions.finding import Question

EFFECT = Question(
    "effect",
    "Does acting matter?",
    "acting changes the reward of the round.",
    "Go on: forecast what a budget brings.",
    "Do not spend actions as they are; change the action, or look for people who gain.",
    "Plan a trial: `restive trial plan` says how many people and rounds would show it.",
    wanted=True,
)
RANDOMISED = Question(
    "randomised",
    "Was it randomised?",
    "who was acted on was random, given the state and the recorded propensity.",
    "Estimates by propensity may be used: evaluate other policies on this history.",
    "Record the propensity of each action; until then trust comparisons within persons only.",
    "Record the propensity of each action from now on.",
)
HIDDEN = Question(
    "hidden",
    "Is acting free of hidden reasons?",
    "nothing unseen decides both who is acted on and what follows.",
    "Nothing to do.",
    "Use the effect within persons, ask what decided who was acted on, and plan a small randomised trial.",
    "Randomise a small share of the actions: only that excludes hidden reasons.",
)
PEOPLE = Question(
    "people",
    "Do people differ?",
    "people in the same state differ in how they move, so that learning about each of them can pay.",
    "Let the program learn about each person; features that explain the difference help newcomers.",
    "One rule by state is enough.",
    "Start from what is common to all, and learn.",
    wanted=True,
)
MEMORY = Question(
    "memory",
    "Is one step of memory enough?",
    "what happens next depends on the present state and action, not on those before.",
    "Nothing to do.",
    "Read the forecast with people who remember one state more, which `restive forecast` shows beside the first.",
    "Collect more rounds of each person.",
)
CHANGE = Question(
    "change",
    "Does it stay the same over time?",
    "each person's probabilities stay the same over the rounds.",
    "Nothing to do.",
    "Read the forecast from the last third of the rounds, which `restive forecast` shows beside the first.",
    "Collect more rounds; a forecast assumes that people stay as they are.",
)
MISSING = Question(
    "missing",
    "Are states missing at random?",
    "whether the next state is known does not depend on acting or on the reward before, given the state.",
    "Nothing to do.",
    "Read effects with the bounds, find out why states are missing, or make “left” a state of its own; `restive fit` takes it for chance.",
    "Read effects with the bounds.",
)
ADVICE = Question(
    "advice",
    "Was the advice followed?",
    "departures from the advice have nothing to do with what would have happened.",
    "Forecast on what is advised: it brings the intention-to-treat effect.",
    "Use the advice, never the action done, to compare people; forecast on what is advised.",
    "Use the advice, not the action done, to compare people.",
)
INFLUENCE = Question(
    "influence",
    "Are people independent of each other?",
    "acting on others in the same group does not change a person's own outcome.",
    "Nothing to do.",
    "Choose and randomise whole groups; forecasts for single people leave this out.",
    "Note which people share a household, ward or team in a column `group`.",
)
