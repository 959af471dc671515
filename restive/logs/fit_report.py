"""What a fitted model says: what acting changes, how alike people are, how well it predicts what it has not seen."""

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from restive.formats import finite_or_none, show_count, show_fixed, show_interval, show_percent
from restive.logs.model import FittedModel, Forgetting, Prior
from restive.logs.sections import Section
from restive.report.tables import Table
from restive.types import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW_MOVES = 30  # below, a row is drawn strongly towards equal probabilities, and is shown as such
LEVEL = 0.95
AVERAGED_PEOPLE = 500  # over whose features means of draws are taken
HELD_OUT = {"rounds": "the last fifth of everybody's moves", "people": "a fifth of the people, as newcomers"}


class Estimate(NamedTuple):
    """A number with its 95% interval; NaN if it is not known."""

    value: float
    low: float
    high: float

    def show(self, decimals: int = 3) -> str:
        """The number and the interval."""
        return show_interval(self.value, self.low, self.high, decimals) if self.known else "not known"

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return bool(np.isfinite(self.value))

    def as_json(self) -> list[float | None]:
        """Value, low and high."""
        return [finite_or_none(part) for part in self]


NOT_KNOWN = Estimate(np.nan, np.nan, np.nan)


class Effect(NamedTuple):
    """What acting changes in a state: the expected reward in the next round, acting against waiting."""

    state: str
    moves: tuple[int, int]  # seen waiting and acting
    mean: Estimate  # over people
    spread: Estimate  # the standard deviation between people


def interval(draws: Floats, level: float = LEVEL) -> Floats:
    """The ends of the interval that holds a new draw with probability `level`, over the first axis."""
    tail = (1 - level) / 2
    return np.asarray(np.quantile(draws, [tail, 1 - tail], axis=0, method="weibull"))


def find_effects(model: FittedModel, seed: int = 0) -> list[Effect]:
    """The effect of acting in each state; not known where nobody was seen acted on, or nobody was seen not acted on."""
    value = _draw_value(model, seed)
    people = _some_features(model)
    moments = [effect_moments(prior, each, people) for prior, each in zip(model.draws, value, strict=True)]
    # Draws are taken over some people; what all people differ from them is added, at the center of the draws.
    everybody, some = (effect_moments(model.prior, model.value, group) for group in (model.features, people))
    mean, spread = (
        np.array(part) + all_people - sample
        for part, all_people, sample in zip(zip(*moments, strict=True), everybody, some, strict=True)
    )
    seen = np.rint(model.counts.sum(axis=(0, 3))).astype(int)
    effects = []
    for s, state in enumerate(model.states):
        known = bool(seen[:, s].all())
        estimates = [_estimate(part[:, s]) if known else NOT_KNOWN for part in (mean, spread)]
        effects.append(Effect(state, (int(seen[0, s]), int(seen[1, s])), *estimates))
    return effects


def effect_moments(prior: Prior, value: Floats, features: Floats | None = None) -> tuple[Floats, Floats]:
    """The mean and the standard deviation over people of the effect of acting in each state, [S] each.

    Rows of one person are independent given the type, or the features [N, F] that people have.
    """
    share, alpha = prior.components(features)
    total = alpha.sum(axis=-1)
    rows = alpha / total[..., None]
    expected = rows @ value  # [K, A, S]
    within = (rows @ value**2 - expected**2) / (total + 1)
    effect = expected[:, 1] - expected[:, 0]
    mean = share @ effect
    return mean, np.sqrt(share @ (within.sum(axis=1) + (effect - mean) ** 2))


def find_correlations(model: FittedModel) -> dict[str, Estimate]:
    """The share of a row's variance that is between people, waiting and acting, over all states as they were seen."""
    seen, people = model.counts.sum(axis=(0, 3)), _some_features(model)
    found = {}
    for action, name in enumerate(("waiting", "acting")):
        if seen[action].sum() == 0:
            found[name] = NOT_KNOWN
            continue
        weight = seen[action] / seen[action].sum()
        found[name] = _estimate(np.array([between_people(prior, people)[action] @ weight for prior in model.draws]))
    return found


def between_people(prior: Prior, features: Floats | None = None) -> Floats:
    """The correlation of two moves of one person from one state under one action, [A, S].

    That is Σ_t var(row(t)) / Σ_t mean(t) (1 − mean(t)) over people: 0 if all have the same row, 1 if everybody always
    moves to the same state.
    """
    share, alpha = prior.components(features)
    total = alpha.sum(axis=-1, keepdims=True)
    rows = alpha / total
    mean = np.tensordot(share, rows, 1)
    squares = np.tensordot(share, rows**2 + rows * (1 - rows) / (total + 1), 1)
    return np.asarray((squares - mean**2).sum(axis=-1) / np.maximum((mean * (1 - mean)).sum(axis=-1), 1e-12))


class Moderation(NamedTuple):
    """By how much the effect of acting differs for people with one standard deviation more of a feature."""

    feature: str
    change: Estimate


def find_moderation(model: FittedModel) -> list[Moderation]:
    """The features that the model uses, by how much they change the effect of acting, over states as they were seen."""
    if not model.feature_names:
        return []
    seen = model.counts.sum(axis=(0, 1, 3))
    weight = seen / max(seen.sum(), 1)
    unit = np.eye(len(model.feature_names))
    changes = []
    for prior in model.draws:
        reward = (rows := prior.alpha_of(np.concatenate([0 * unit[:1], unit]))) @ model.value / rows.sum(axis=-1)
        effect = (reward[:, 1] - reward[:, 0]) @ weight
        changes.append(effect[1:] - effect[0])
    return [
        Moderation(name, _estimate(np.array(part)))
        for name, part in zip(model.feature_names, zip(*changes, strict=True), strict=True)
    ]


def summarize(model: FittedModel) -> dict[str, Any]:
    """The numbers of a model as plain data."""
    return {
        "people": len(model.agents),
        "states": list(model.states),
        "rounds": model.logged.rounds,
        "moves": round(model.counts.sum()),
        "value": [[value, error] for value, error in zip(model.value.tolist(), _errors(model).tolist(), strict=True)],
        "effects": [
            {
                "state": effect.state,
                "moves": list(effect.moves),
                "mean": effect.mean.as_json(),
                "spread": effect.spread.as_json(),
            }
            for effect in find_effects(model)
        ],
        "between_people": {name: each.as_json() for name, each in find_correlations(model).items()},
        "types": model.prior.share.tolist(),
        "choice": model.choice._asdict(),
        "forgetting": model.forgetting._asdict(),
        "features": {each.feature: each.change.as_json() for each in find_moderation(model)},
        "held_out": model.held_out,
        "verdicts": list(model.verdicts),
        "notes": list(model.notes),
    }


def describe(model: FittedModel) -> tuple[Section, ...]:
    """What to show, the most important first."""
    effects = find_effects(model)
    return tuple(
        section
        for section in (
            _describe_effects(model, effects),
            _describe_people(model, effects),
            *([_describe_forgetting(model)] if model.forgetting != Forgetting() else []),
            *([_describe_held_out(model)] if model.held_out else []),
            *([Section("Does the model hold?", model.verdicts)] if model.verdicts else []),
            *([Section("To know", model.notes)] if model.notes else []),
        )
    )


def _describe_effects(model: FittedModel, effects: list[Effect]) -> Section:
    size = f"{show_count(len(model.agents), 'person', 'people')}, {show_count(round(model.counts.sum()), 'move')}"
    errors = _errors(model)
    rows = tuple(
        (
            effect.state,
            show_interval(value, value - 1.96 * error, value + 1.96 * error, 3) if error > 0 else show_fixed(value, 3),
            f"{effect.moves[0]:,}",
            f"{effect.moves[1]:,}",
            effect.mean.show(),
            effect.spread.show(),
        )
        for effect, value, error in zip(effects, model.value.tolist(), errors.tolist(), strict=True)
    )
    note = (
        "Effect: expected reward of the next round, acting against waiting, mean over people, with 95% interval. "
        "Spread: standard deviation of the effect between people."
    )
    heads = ("state", "reward on arrival", "moves waiting", "moves acting", "effect of acting", "spread")
    figure = partial(_draw_effects, effects) if any(effect.mean.known for effect in effects) else None
    return Section(
        f"What acting changes ({size})",
        tuple(_say_effect(effect) for effect in effects),
        Table("", heads, rows, note),
        figure,
        "The effect of acting in each state on the expected reward of the next round, with 95% intervals.",
    )


def _say_effect(effect: Effect) -> str:
    if not effect.mean.known:
        missing = "acted on" if effect.moves[1] == 0 else "left alone"
        return f"In {effect.state!r} the effect of acting is not known: nobody was seen {missing} there."
    mean, shown = effect.mean, effect.mean.show()
    few = min(effect.moves)
    shrunk = f" It rests on {few} moves, so its rows are drawn towards equal probabilities." if few < FEW_MOVES else ""
    if mean.low > 0:
        return f"In {effect.state!r} acting raises the next reward by {shown}.{shrunk}"
    if mean.high < 0:
        return f"In {effect.state!r} acting lowers the next reward: {shown}.{shrunk}"
    return f"In {effect.state!r} the effect of acting, {shown}, cannot be distinguished from none.{shrunk}"


def _describe_people(model: FittedModel, effects: list[Effect]) -> Section:
    sentences = []
    for name, share in find_correlations(model).items():
        if share.known:
            shown = f"{show_percent(share.value)} [{show_percent(share.low)}, {show_percent(share.high)}]"
            sentences.append(f"{name.capitalize()}, {shown} of the variance of moves is between people.")
    types = model.prior.share
    if types.size > 1:
        shares = ", ".join(show_percent(float(share)) for share in types)
        sentences.append(f"People are of {types.size} types, with shares {shares}{_say_gain(model)}.")
    elif model.choice.type_gains and model.choice.ridge is None:
        sentences.append("Types of people did not earn their place by the log score of held-out people.")
    if model.choice.feature_gains:
        sentences.append(_say_features(model))
    table = _tabulate_types(model) if types.size > 1 else _tabulate_features(model) if model.feature_names else None
    return Section("How alike people are", tuple(sentences), table)


def _describe_forgetting(model: FittedModel) -> Section:
    half_life, gains = model.forgetting
    scored = {each: (gain, error) for each, gain, error in gains}
    best = max(scored, key=lambda each: scored[each][0], default=None) if half_life is None else half_life
    if half_life is None:
        sentences = ["All moves count the same: older moves predict each round as well as newer ones do."]
    else:
        moves = show_count(round(model.counts.sum()), "move")
        sentences = [f"A move counts half after {half_life:g} rounds, so those of the history count as {moves}."]
    if best in scored:
        gain, error = scored[best]
        sentences.append(
            f"A half-life of {best:g} rounds, of {len(scored)} tried, changes the log score of predicting each round "
            f"from those before by {show_fixed(gain, 4)} ± {show_fixed(error, 4)} a move; one that gains more than 2.5 errors is used."
        )
    return Section("Do older moves still count?", tuple(sentences))


def _say_features(model: FittedModel) -> str:
    gain, error = max(model.choice.feature_gains)
    score = f"the log score of held-out people changes by {show_fixed(gain, 3)} ± {show_fixed(error, 3)} a person"
    if model.feature_names:
        return f"Features say something about people: {score}."
    return f"Features did not earn their place: {score}."


def _tabulate_features(model: FittedModel) -> Table:
    rows = tuple((each.feature, each.change.show()) for each in find_moderation(model))
    note = "For people with one standard deviation more of the feature than the mean, over states as they were seen."
    return Table("", ("feature", "change of the effect of acting"), rows, note)


def _say_gain(model: FittedModel) -> str:
    if not model.choice.type_gains:
        return ""
    gain, error = model.choice.type_gains[model.prior.share.size - 1]
    return f": the log score of held-out people is better by {show_fixed(gain, 3)} ± {show_fixed(error, 3)} a person"


def _tabulate_types(model: FittedModel) -> Table:
    """The expected reward of each type in each state, waiting and acting."""
    reward = model.prior.alpha @ model.value / model.prior.alpha.sum(axis=-1)  # [K, A, S]
    heads = ("type", "share", *(f"{state}, {name}" for state in model.states for name in ("waiting", "acting")))
    rows = tuple(
        (str(k + 1), show_percent(float(model.prior.share[k])), *(show_fixed(each, 3) for each in reward[k].T.ravel()))
        for k in range(reward.shape[0])
    )
    return Table("", heads, rows, "Expected reward of the next round.")


def _describe_held_out(model: FittedModel) -> Section:
    sentences, rows = [], []
    for name, figures in model.held_out.items():
        gain, error = figures["gain_over_pooled"]
        better = "better than" if gain > 2 * error else "worse than" if gain < -2 * error else "as well as"
        slope = Estimate(*figures["slope"])
        right = "are calibrated" if slope.low <= 1 <= slope.high else "are not calibrated"
        about = HELD_OUT[name]
        sentences.append(
            f"On {about} the model predicts {better} one row for everybody, and its probabilities {right}."
        )
        rows.append(
            (
                name,
                f"{figures['moves']:,}",
                f"{show_fixed(gain, 4)} ± {show_fixed(error, 4)}",
                "{} ± {}".format(*(show_fixed(part, 4) for part in figures["gain_over_stay"])),
                f"{show_fixed(figures['brier'], 3)} / {show_fixed(figures['brier_pooled'], 3)}",
                slope.show(2),
                Estimate(*figures["intercept"]).show(2),
                show_fixed(figures["calibration_error"], 3),
            )
        )
    heads = (
        "held out",
        "moves",
        "gain over pooled",
        "gain over staying",
        "Brier / pooled",
        "slope",
        "intercept",
        "error",
    )
    note = (
        "Gains: log score per move, ± standard error by person. Slope 1 and intercept 0: predicted probabilities are "
        "right. Error: root mean square over ten bins, without noise."
    )
    return Section(
        "Predictions of what the fit has not seen",
        tuple(sentences),
        Table("", heads, tuple(rows), note),
        partial(_draw_reliability, model.held_out),
        "Share of arrivals in a state or a better one, against its predicted probability, in ten bins.",
    )


def _draw_effects(effects: list[Effect]) -> "Figure":
    from restive.plotting import BLUE, Dot, draw_dots

    rows = {effect.state: [Dot("effect", *effect.mean, BLUE)] for effect in effects if effect.mean.known}
    return draw_dots(rows, "effect of acting on the next reward", {"no effect": 0.0})


def _draw_reliability(held_out: dict[str, Any]) -> "Figure":
    from restive.plotting import Line, draw_lines

    lines = []
    for name, figures in held_out.items():
        number, stated, observed = np.array(figures["reliability"]).T
        reach = 1.96 * np.sqrt(observed * (1 - observed) / number)
        lines.append(Line(HELD_OUT[name], stated, observed, observed - reach, observed + reach))
    ends = np.array([0.0, 1.0])
    lines.append(Line("as predicted", ends, ends, ends, ends))
    return draw_lines(lines, "predicted probability", "observed share", "")


def _draw_value(model: FittedModel, seed: int) -> Floats:
    """Draws of the value of each state, [draws, S]."""
    noise = np.random.default_rng([seed, 2]).standard_normal((len(model.draws), model.value.size))
    return np.asarray(model.value + _errors(model) * noise)


def _some_features(model: FittedModel) -> Floats | None:
    """Features of people who stand for all, [n, F]."""
    if model.features is None:
        return None
    return model.features[:: max(1, len(model.agents) // AVERAGED_PEOPLE)]


def _errors(model: FittedModel) -> Floats:
    """The standard errors of the values; 0 where they are not known."""
    return np.nan_to_num(model.value_error) if model.value_error.size else np.zeros(model.value.size)


def _estimate(draws: Floats) -> Estimate:
    return Estimate(float(draws.mean()), *map(float, interval(draws)))
