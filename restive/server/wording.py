"""Sentences of the desk, as they are said to somebody who has no command line before them."""

import re

# The desk names commands and options; a request has fields of the same names, and a page has forms.
COMMANDS = (
    (r" Its list: restive desk round \S+ \d+\.", ""),
    (r": restive desk cancel \S+ \d+", ", cancel it"),
    (r"see in `restive desk list` how many", "see how many"),
    (r"--(again|new|correct|round)\b", r"\1"),
)
FORMS = (
    (r", cancel it$", ", cancel it under Settings"),
    (r"([Ss])ay by round or by a column round which one is meant", r"\1ay which one is meant: choose it in the form"),
    (r" \((again|new|correct)\)", ", by the box for it"),
    (r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d\.\d{6}\+00:00", r"\1 \2 UTC"),
)


def speak(sentence: str) -> str:
    """A sentence without commands.

    >>> speak("round 2 has no outcomes yet; if it was a mistake: restive desk cancel coupons 2")
    'round 2 has no outcomes yet; if it was a mistake, cancel it'
    """
    return _replace(sentence, COMMANDS)


def say_here(sentence: str) -> str:
    """A sentence in the words of a page, which has boxes where the command line has options.

    >>> say_here("another round is meant although nobody moved, say so (--again).")
    'another round is meant although nobody moved, say so, by the box for it.'
    """
    return _replace(speak(sentence), FORMS)


def _replace(sentence: str, words: tuple[tuple[str, str], ...]) -> str:
    for spoken, here in words:
        sentence = re.sub(spoken, here, sentence)
    return sentence
