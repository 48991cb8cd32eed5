"""Non-negative least squares with intervals, errors of prediction, and which coefficients cannot be told apart.

Rows are weighted by 1 / predicted, and fitted again until that no longer changes: an error of one per cent counts alike
in a window of 1 ms and in one of 1 s.  (Weights of 1 / measured give windows that read low more weight, a bias of
−2σ².)  Residuals are bent (Huber's loss).  The first prediction is that of least absolute deviations of the logarithm,
on which a single wrong window has little pull; windows that are many times off from it are left out, and named.
Intervals are the 95 % ones of linear regression, over the coefficients that are not at their bound 0.  Collinearity:
D. A. Belsley, E. Kuh and R. E. Welsch, *Regression Diagnostics* (Wiley 1980), chapter 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls
from scipy.stats import t as student

from compare.render.units import count_text
from compare.timeline.arrays import Floats, Mask
from compare.timeline.errors import TimingError

CONFIDENCE = 0.95
MOST_CONDITION = 30.0
"""Condition indices above it mark a dependency between columns, by Belsley, Kuh and Welsch."""
MOST_SHARE = 0.5
"""Of a coefficient's variance: what comes of such a dependency may be this share of it."""
MOST_OFF, MOST_SPREADS = 3.0, 6.0
"""A window that is off from a robust fit by more than both, a factor and robust standard deviations, does not fit."""
MOST_LEFT_OUT = 0.1
"""Of all windows, the part that may be left out as not fitting: beyond it the model is wrong, and not the windows."""
BEND = 2.5
"""Standard deviations from which on a residual counts in proportion to its size, and no longer to its square."""
LEAST_SPREAD = 1e-3
"""A standard deviation of residuals that is believed: a clock is no better."""
_ROUNDS = 50
_SETTLED = 1e-7
"""Relative change of every prediction: of intervals of a per mille, nothing."""
_SETTLED_ROBUST = 1e-3
"""Relative change of the robust fit's deviations, which is a start only."""
_LEAST_PREDICTED = 1e-3
"""Of what was measured: a window of which next to nothing is predicted has the weight of that."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a window's total is a sum of: amounts × coefficients.

    Of the columns of `core` together and of `memory` together only the larger sum counts: a device computes and reads
    at the same time.  Where both are empty everything adds up.
    """

    names: tuple[str, ...]
    amounts: Floats
    """(windows, names)"""
    core: Mask
    """(names,)"""
    memory: Mask
    """(names,)"""

    def at(self, rows: Mask) -> "Terms":
        """Those windows alone."""
        return Terms(self.names, self.amounts[rows], self.core, self.memory)

    def predict(self, coefficients: Floats) -> Floats:
        """The total of each window."""
        totals: Floats = (self.binding(coefficients) * self.amounts * coefficients).sum(axis=1)
        return totals

    def binding(self, coefficients: Floats) -> Mask:
        """(windows, names): False where the other of core and memory takes longer."""
        parts = self.amounts * coefficients
        by_core = parts[:, self.core].sum(axis=1) >= parts[:, self.memory].sum(axis=1)
        mask: Mask = np.ones(self.amounts.shape, np.bool_)
        mask[:, self.core] &= by_core[:, None]
        mask[:, self.memory] &= ~by_core[:, None]
        return mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A coefficient, and the interval that holds it with CONFIDENCE."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """A window that was left out, since it is many times off from what all others say."""

    name: str
    measured: float
    predicted: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What the windows say."""

    estimates: tuple[Estimate, ...]
    """Of the coefficients that they determine."""
    collinear: tuple[tuple[str, ...], ...]
    """Groups of coefficients that they cannot tell apart."""
    unseen: tuple[str, ...]
    """Coefficients that no window shows: there is no such work, or it never is what takes long."""
    misfits: tuple[Misfit, ...]
    num_windows: int
    """Those that were fitted."""
    spread: float
    """Standard deviation of the relative residuals."""
    errors: Floats
    """Per window, of its prediction from those of other groups: prediction ÷ measured − 1; NaN where these do not
    determine what it needs."""
    predicted: Floats
    """Per window, by the fit of all."""


def fit_terms(terms: Terms, measured: Floats, *, groups: Sequence[str]) -> Fit:
    """Coefficients ≥ 0 of windows that took or cost `measured` (windows,), all positive.

    groups: of each window its name; those of one name repeat each other, and are left out together.
    `TimingError`, one line, where the windows are too few or do not vary.
    """
    seen: Mask = np.asarray((terms.amounts > 0).any(axis=0))
    names = tuple(name for name, keep in zip(terms.names, seen, strict=True) if keep)
    known = Terms(names, terms.amounts[:, seen], terms.core[seen], terms.memory[seen])
    _check_variation(known, measured)
    robust = _fit_robustly(known, measured)
    fits: Mask = ~_find_misfits(known, measured, robust)
    solution = _solve(known.at(fits), measured[fits], start=robust)
    design = solution.design
    shown: Mask = np.asarray(design.any(axis=0))
    shown_names = [name for name, keep in zip(names, shown, strict=True) if keep]
    unseen = (
        *(name for name in terms.names if name not in names),
        *(name for name in names if name not in shown_names),
    )
    collinear = find_collinear(design[:, shown], shown_names)
    refused = {name for group in collinear for name in group}
    if set(shown_names) <= refused:
        groups = "; ".join(" and ".join(group) for group in collinear)
        raise TimingError(
            f"the {len(measured)} windows cannot tell {groups} apart; add windows in which one varies alone"
        )
    spread, estimates = _estimate(shown_names, solution, shown)
    predicted = known.predict(solution.coefficients)
    return Fit(
        estimates=tuple(each for each in estimates if each.name not in refused),
        collinear=tuple(collinear),
        unseen=unseen,
        misfits=tuple(
            Misfit(name=groups[at], measured=float(measured[at]), predicted=float(predicted[at]))
            for at in np.flatnonzero(~fits).tolist()
        ),
        num_windows=int(fits.sum()),
        spread=spread,
        errors=_leave_one_out(known, measured, groups, fits=fits, start=solution.coefficients),
        predicted=predicted,
    )


def find_collinear(design: Floats, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Groups of columns of which some combination is nearly constant 0: scaled to length 1, condition index above
    MOST_CONDITION, and more than MOST_SHARE of each one's variance from it."""
    lengths = np.linalg.norm(design, axis=0)
    _, singular, right = np.linalg.svd(design / lengths, full_matrices=True)
    singular = np.append(singular, np.zeros(len(names) - singular.size))
    singular = np.maximum(singular, singular[0] * 1e-12)
    weak = singular[0] / singular > MOST_CONDITION
    parts = (right / singular[:, None]) ** 2
    shares = parts / parts.sum(axis=0)
    affected = shares[weak].sum(axis=0) > MOST_SHARE
    groups: list[tuple[str, ...]] = []
    for direction in right[weak]:
        group = tuple(
            name for name, part, hit in zip(names, direction, affected, strict=True) if hit and abs(part) > 0.1
        )
        if len(group) > 1 and group not in groups:
            groups.append(group)
    return groups


def _check_variation(terms: Terms, measured: Floats) -> None:
    count, size = terms.amounts.shape
    if not size:
        raise TimingError("the windows hold no work that is measured; give matrix_flops, memory_bytes or another")
    if count <= size:
        raise TimingError(
            f"{count_text(count, 'window')} for {count_text(size, 'coefficient')} ({', '.join(terms.names)}): at least "
            f"{size + 1} are needed"
        )
    rows = terms.amounts / measured[:, None]
    scaled = rows / rows.max(axis=0)
    if size > 1 and float(np.ptp(scaled, axis=0).max()) < 1e-3:
        raise TimingError(
            f"the windows do not vary: in all {count} of them {', '.join(terms.names)} stand in one proportion to what "
            "was measured; measure other sizes and other operations"
        )


@dataclass(frozen=True, slots=True)
class _Solution:
    coefficients: Floats
    design: Floats
    """(windows, names): rows ÷ predicted, in which only what takes long counts."""
    target: Floats
    """(windows,): measured ÷ predicted."""
    pulls: Floats
    """(windows,): of its residual, what counts: 1, and less where it is beyond BEND standard deviations."""


def _solve(terms: Terms, measured: Floats, *, start: Floats) -> _Solution:
    """Least squares with weights of 1 / predicted and Huber's loss, repeated until neither changes."""
    coefficients, best, least = start, None, np.inf
    for _ in range(_ROUNDS):
        weights = _weights(terms, measured, coefficients)
        design = terms.amounts * terms.binding(coefficients) * weights[:, None]
        target = measured * weights
        pulls = _pulls(target - design @ coefficients, int((coefficients > 0).sum()))
        roots = np.sqrt(pulls)
        following = _fit_rows(design * roots[:, None], target * roots)
        before, after = (_log_errors(terms, measured, each) for each in (coefficients, following))
        coefficients, size = following, float(np.abs(after).sum())
        solution = _Solution(coefficients, design, target, pulls)
        if best is None or size < least:
            best, least = solution, size
        if float(np.abs(after - before).max()) < _SETTLED:
            return solution
    assert best is not None
    return best


def _pulls(residuals: Floats, size: int) -> Floats:
    free = max(len(residuals) - size, 1)
    spread = 1.4826 * float(np.median(np.abs(residuals))) * np.sqrt(len(residuals) / free)
    pulls: Floats = np.minimum(1.0, BEND * max(spread, LEAST_SPREAD) / np.maximum(np.abs(residuals), 1e-300))
    return pulls


def _fit_robustly(terms: Terms, measured: Floats) -> Floats:
    """The coefficients of least absolute deviations of the logarithm, by reweighted steps from the best of two starts.

    One start has weights of 1 / measured, on which a window that reads low pulls, one has none, as long ones do.
    """
    starts = [_fit_weighted(terms, measured, weights) for weights in (1 / measured, np.full(len(measured), 1.0))]
    best = min(starts, key=lambda each: float(np.abs(_log_errors(terms, measured, each)).sum()))
    coefficients, least = best, float(np.abs(_log_errors(terms, measured, best)).sum())
    for _ in range(_ROUNDS):
        errors = np.clip(_log_errors(terms, measured, coefficients), -1.0, 1.0)
        reach = 1 / np.sqrt(np.maximum(np.abs(errors), 1e-3))
        weights = _weights(terms, measured, coefficients) * reach
        design = terms.amounts * terms.binding(coefficients) * weights[:, None]
        coefficients = _fit_rows(design, (1 + errors) * reach)
        size = float(np.abs(_log_errors(terms, measured, coefficients)).sum())
        if size > least * (1 - _SETTLED_ROBUST):
            return best if size > least else coefficients
        best, least = coefficients, size
    return best


def _fit_weighted(terms: Terms, measured: Floats, weights: Floats) -> Floats:
    """With given weights; the mask of what takes long follows from the fit itself."""
    rows, target = terms.amounts * weights[:, None], measured * weights
    mask: Mask = np.ones(rows.shape, np.bool_)
    best, least = np.zeros(len(terms.names)), np.inf
    for _ in range(_ROUNDS):
        coefficients = _fit_rows(rows * mask, target)
        error = float(np.linalg.norm(terms.predict(coefficients) / measured - 1))
        if error < least:
            best, least = coefficients, error
        following = terms.binding(coefficients)
        if (following == mask).all():
            break
        mask = following
    return best


def _fit_rows(rows: Floats, target: Floats) -> Floats:
    scale = np.maximum(np.abs(rows).max(axis=0), 1e-300)
    size = float(np.abs(target).max())
    try:
        solution, _ = nnls(rows / scale, target / size)
    except RuntimeError:  # its limit of rounds: numbers too far apart
        raise TimingError("cannot fit: the measurements span too many orders of magnitude; check the units") from None
    coefficients: Floats = solution * size / scale
    return coefficients


def _weights(terms: Terms, measured: Floats, coefficients: Floats) -> Floats:
    weights: Floats = 1 / np.maximum(terms.predict(coefficients), measured * _LEAST_PREDICTED)
    return weights


def _log_errors(terms: Terms, measured: Floats, coefficients: Floats) -> Floats:
    """(windows,): the logarithm of measured ÷ predicted."""
    errors: Floats = np.log(measured * _weights(terms, measured, coefficients))
    return errors


def _find_misfits(terms: Terms, measured: Floats, robust: Floats) -> Mask:
    """Windows that are many times off; none where there are too many of them, or too few others to say so."""
    errors = np.abs(_log_errors(terms, measured, robust))
    spread = 1.4826 * float(np.median(errors))
    odd: Mask = errors > max(float(np.log(MOST_OFF)), MOST_SPREADS * spread)
    count, size = terms.amounts.shape
    others = terms.amounts[~odd]
    is_allowed = odd.sum() <= max(1, MOST_LEFT_OUT * count) and len(others) > size and others.any(axis=0).all()
    return odd if is_allowed else np.zeros(count, np.bool_)


def _estimate(names: Sequence[str], fitted: _Solution, shown: Mask) -> tuple[float, list[Estimate]]:
    """The spread of the residuals, and each coefficient with its interval.

    Where residuals are bent, the spread is that of Huber's estimator: what counts of them, by the part that is not.
    """
    design, target = fitted.design[:, shown], fitted.target
    scale = design.max(axis=0)
    scaled, solution = design / scale, fitted.coefficients[shown] * scale
    counted = fitted.pulls * (target - scaled @ solution)
    positive = solution > 0
    free = max(len(counted) - int(positive.sum()), 1)
    straight = float((fitted.pulls == 1).mean())
    spread = float(np.sqrt(counted @ counted / free)) / straight
    reach = float(student.ppf((1 + CONFIDENCE) / 2, free))
    estimates = []
    for index, name in enumerate(names):
        columns = np.flatnonzero(positive | (np.arange(len(names)) == index))
        part = scaled[:, columns]
        inverse = np.linalg.pinv(part.T @ part)
        at = int(np.flatnonzero(columns == index)[0])
        error = reach * spread * float(np.sqrt(inverse[at, at]))
        # At the bound the unbounded estimate is negative: the interval ends where that one's does, or at 0.
        centre = float(solution[index]) + float(inverse[at] @ part.T @ counted) / straight
        low, high = max(0.0, centre - error), max(float(solution[index]), centre + error, 0.0)
        value = float(solution[index])
        estimates.append(
            Estimate(
                name=name, value=value / scale[index], low=min(low, value) / scale[index], high=high / scale[index]
            )
        )
    return spread, estimates


def _leave_one_out(terms: Terms, measured: Floats, groups: Sequence[str], *, fits: Mask, start: Floats) -> Floats:
    errors, names = np.full(len(measured), np.nan), np.array(groups)
    for name in dict.fromkeys(groups):
        others = (names != name) & fits
        if not others.any():
            continue
        solution = _solve(terms.at(others), measured[others], start=start)
        left_out = terms.at(names == name)
        needed = (left_out.amounts > 0).any(axis=0)
        if (needed & ~_determined(terms.names, terms.at(others).amounts, solution.design)).any():
            continue
        errors[names == name] = left_out.predict(solution.coefficients) / measured[names == name] - 1
    return errors


def _determined(names: Sequence[str], amounts: Floats, design: Floats) -> Mask:
    """(names,): whether there is such work, and nothing else that goes with it in every window."""
    shown: Mask = np.asarray(design.any(axis=0))
    shown_names = [name for name, keep in zip(names, shown, strict=True) if keep]
    collinear = {name for group in find_collinear(design[:, shown], shown_names) for name in group}
    present: Mask = np.asarray(amounts.any(axis=0))
    told_apart: Mask = np.array([name not in collinear for name in names])
    return np.logical_and(present, told_apart)
