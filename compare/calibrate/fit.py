"""Non-negative least squares with intervals, errors of prediction, and which coefficients cannot be told apart.

Rows are weighted by 1 / measured: an error of one per cent counts alike in a window of 1 ms and in one of 1 s.
Intervals are the 95 % ones of linear regression, over the coefficients that are not at their bound 0.  Collinearity:
D. A. Belsley, E. Kuh and R. E. Welsch, *Regression Diagnostics* (Wiley 1980), chapter 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls
from scipy.stats import t as student

from compare.render.units import count_text
from compare.timing.arrays import Floats, Mask
from compare.timing.errors import TimingError

CONFIDENCE = 0.95
MOST_CONDITION = 30.0
"""Condition indices above it mark a dependency between columns, by Belsley, Kuh and Welsch."""
MOST_SHARE = 0.5
"""Of a coefficient's variance: what comes of such a dependency may be this share of it."""
_ROUNDS = 20


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
class Fit:
    """What the windows say."""

    estimates: tuple[Estimate, ...]
    """Of the coefficients that they determine."""
    collinear: tuple[tuple[str, ...], ...]
    """Groups of coefficients that they cannot tell apart."""
    unseen: tuple[str, ...]
    """Coefficients that no window shows: there is no such work, or it never is what takes long."""
    num_windows: int
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
    coefficients, design = _solve(known, measured)
    shown: Mask = np.asarray(design.any(axis=0))
    shown_names = [name for name, keep in zip(names, shown, strict=True) if keep]
    unseen = (*(name for name in terms.names if name not in names),
              *(name for name in names if name not in shown_names))  # fmt: skip
    collinear = find_collinear(design[:, shown], shown_names)
    refused = {name for group in collinear for name in group}
    if set(shown_names) <= refused:
        groups = "; ".join(" and ".join(group) for group in collinear)
        raise TimingError(
            f"the {len(measured)} windows cannot tell {groups} apart; add windows in which one varies alone"
        )
    spread, estimates = _estimate(shown_names, design[:, shown], coefficients[shown])
    return Fit(
        estimates=tuple(each for each in estimates if each.name not in refused),
        collinear=tuple(collinear),
        unseen=unseen,
        num_windows=len(measured),
        spread=spread,
        errors=_leave_one_out(known, measured, groups),
        predicted=known.predict(coefficients),
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


def _solve(terms: Terms, measured: Floats) -> tuple[Floats, Floats]:
    """Coefficients, and the weighted rows (windows, names) in which only what takes long counts."""
    rows, ones = terms.amounts / measured[:, None], np.ones(len(measured))
    scale = np.maximum(rows.max(axis=0), 1e-300)
    mask = np.ones(rows.shape, np.bool_)
    best, least = (np.zeros(len(terms.names)), rows), np.inf
    for _ in range(_ROUNDS):
        try:
            solution, _ = nnls(rows * mask / scale, ones)
        except RuntimeError:  # its limit of rounds: numbers too far apart
            raise TimingError("the windows have no fit: their numbers are too far apart; check their units") from None
        coefficients: Floats = solution / scale
        design: Floats = rows * mask
        error = float(np.linalg.norm(terms.predict(coefficients) / measured - 1))
        if error < least:
            best, least = (coefficients, design), error
        following = terms.binding(coefficients)
        if (following == mask).all():
            break
        mask = following
    return best


def _estimate(names: Sequence[str], design: Floats, coefficients: Floats) -> tuple[float, list[Estimate]]:
    """The spread of the residuals, and each coefficient with its interval."""
    scale = design.max(axis=0)
    scaled, solution = design / scale, coefficients * scale
    residuals = 1 - scaled @ solution
    positive = solution > 0
    free = max(len(residuals) - int(positive.sum()), 1)
    spread = float(np.sqrt(residuals @ residuals / free))
    reach = float(student.ppf((1 + CONFIDENCE) / 2, free))
    estimates = []
    for index, name in enumerate(names):
        columns = np.flatnonzero(positive | (np.arange(len(names)) == index))
        part = scaled[:, columns]
        inverse = np.linalg.pinv(part.T @ part)
        at = int(np.flatnonzero(columns == index)[0])
        error = reach * spread * float(np.sqrt(inverse[at, at]))
        # At the bound the unbounded estimate is negative: the interval ends where that one's does, or at 0.
        centre = float(inverse[at] @ part.T @ np.ones(len(residuals)))
        low, high = max(0.0, centre - error), max(float(solution[index]), centre + error, 0.0)
        value = float(solution[index])
        estimates.append(
            Estimate(
                name=name, value=value / scale[index], low=min(low, value) / scale[index], high=high / scale[index]
            )
        )
    return spread, estimates


def _leave_one_out(terms: Terms, measured: Floats, groups: Sequence[str]) -> Floats:
    errors, names = np.full(len(measured), np.nan), np.array(groups)
    for name in dict.fromkeys(groups):
        others = names != name
        if not others.any():
            continue
        coefficients, design = _solve(terms.at(others), measured[others])
        left_out = terms.at(~others)
        needed = (left_out.amounts > 0).any(axis=0)
        if (needed & ~_determined(terms.names, terms.at(others).amounts, design)).any():
            continue
        errors[~others] = left_out.predict(coefficients) / measured[~others] - 1
    return errors


def _determined(names: Sequence[str], amounts: Floats, design: Floats) -> Mask:
    """(names,): whether there is such work, and nothing else that goes with it in every window."""
    shown: Mask = np.asarray(design.any(axis=0))
    shown_names = [name for name, keep in zip(names, shown, strict=True) if keep]
    collinear = {name for group in find_collinear(design[:, shown], shown_names) for name in group}
    present: Mask = np.asarray(amounts.any(axis=0))
    told_apart: Mask = np.array([name not in collinear for name in names])
    return np.logical_and(present, told_apart)
