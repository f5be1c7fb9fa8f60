"""What a result is worth, in sentences: how much better than the URDF, what is wrong with it."""

from collections.abc import Iterator

import numpy as np

from com_identification.regression.identify import Identification

_NO_BETTER = 1.0  # standard deviations that the CoM must have moved
_SHOWN = 0.8  # of the prior's standard deviation: above, the readings say little of an error


def issues_of(found: Identification) -> list[str]:
    """Issues of a result, with how to fix them; without any, the status is OK."""
    issues, good = [], found.without_outliers
    if found.variance_factor > found.variance_limit:
        issues.append(
            f"The readings differ from what the URDF and the sensors may do by "
            f"{np.sqrt(found.variance_factor):.1f} times what the priors allow; the standard "
            f"deviations are too small. Likeliest: {found.cause}."
        )
    elif found.cause:
        issues.append(f"An error is far larger than its prior. Likeliest: {found.cause}.")
    if good.held_out.rms > good.prior_residual.rms:
        issues.append(
            f"Postures that were left out are predicted to {1e3 * good.held_out.rms:.2f} mm, "
            f"worse than by the URDF ({1e3 * good.prior_residual.rms:.2f} mm): capture more."
        )
    if found.at_bound:
        issues.append(
            f"The centre of mass of {', '.join(found.at_bound)} would be outside of the link's "
            "shape: check the sensors and the shapes, or set prior.bounded to false."
        )
    if 3 * len(found.outliers) > len(found.weights):
        issues.append(
            f"{len(found.outliers)} of {len(found.weights)} postures are inconsistent with the "
            "others: see the problems in the answer of get_postures."
        )
    return issues


def gain(found: Identification) -> str:
    """How much better than the URDF a result is, in a sentence."""
    std, shift = found.prediction_std, found.prediction_shift
    urdf = float(np.hypot(shift, std))
    known = f"In such postures the CoM is known to {1e3 * std:.2f} mm (one sigma, horizontal)"
    if shift < _NO_BETTER * std:
        return (
            f"{known}, and the URDF's differs by {1e3 * shift:.2f} mm only: the result is not "
            "clearly better than the URDF; capture more postures, half of them on one foot, or "
            "narrow sensors.* to what is known."
        )
    return f"{known}, by the URDF to {1e3 * urdf:.2f} mm: {urdf / std:.1f} times better."


def summary(found: Identification) -> str:
    """A result in two sentences; the first says how much better than the URDF it is."""
    what, good = found.identifiability, found.without_outliers
    count = len(found.weights)
    return (
        f"{gain(found)} {count - len(found.outliers)} of {count} postures fit: the feet's CoM is "
        f"met to {1e3 * good.residual.rms:.2f} mm rms (URDF {1e3 * good.prior_residual.rms:.2f} "
        f"mm, left-out postures {1e3 * good.held_out.rms:.2f} mm), rank {what.rank} of "
        f"{what.unknowns}, total mass {found.total_mass:.4g} kg"
    )


def informed_errors(found: Identification) -> Iterator[tuple[str, str, float, float]]:
    """Constant errors of the sensors that the readings determine: kind, name, value, std."""
    for kind, values in found.sensor_errors.items():
        stds = found.sensor_stds[kind]
        for name, value in values.items():
            if stds[name] < _SHOWN * found.sensor_prior_stds[kind][name]:
                yield kind, name, float(value), float(stds[name])
