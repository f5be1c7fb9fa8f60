"""Pictures of what estimators of the trunk said over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from trot_tracks import Track


def draw_payload(track: Track, drop: float, path: Path) -> None:
    """Estimate minus truth with its 3-sigma band, while a payload drops on the trunk.

    Args:
        track: Of that run.
        drop: s, when.
        path: Of the picture.
    """
    figure, axes = plt.subplots(4, 1, figsize=(8, 8), sharex=True, layout="constrained")
    stds = np.sqrt(np.einsum("kii->ki", track.covariance))
    errors = [*(1e3 * track.error.T), track.mass_error]
    bands = [*(3e3 * stds.T), 3.0 * track.mass_std]
    names = ("x [mm]", "y [mm]", "z [mm]", "mass [kg]")
    shown = track.time > 0.3
    for axis, error, band, name in zip(axes, errors, bands, names, strict=True):
        axis.fill_between(
            track.time, -band, band, color="0.85", label="3 standard stds"
        )
        axis.plot(track.time, error, lw=1.0, label="estimate minus truth")
        axis.axvline(drop, color="k", ls="--", lw=0.8)
        settled = np.abs(error[(track.time > drop + 0.5) & shown]).max()
        limit = 1.2 * max(settled, float(np.median(band[shown])))
        axis.set_ylim(-2.0 * limit, 2.0 * limit)
        axis.set_ylabel(name)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8, loc="upper left")
    axes[0].set_title("20 kg drop on a corner of the trunk (dashed)")
    axes[-1].set_xlabel("time since the first lift-off [s]")
    figure.savefig(path, dpi=80)
    plt.close(figure)


def draw_methods(methods: dict[str, Sequence[Track]], path: Path) -> None:
    """Mean over runs of the error in x and y over time, by method."""
    figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
    for name, tracks in methods.items():
        lengths = np.mean([t.distance() for t in tracks], axis=0)
        axis.semilogy(tracks[0].time, 1e3 * lengths, lw=1.0, label=name)
    axis.axvline(0.0, color="k", ls="--", lw=0.8)
    axis.set_xlabel("time since the first lift-off [s]")
    axis.set_ylabel("error in x and y, mean of the runs [mm]")
    axis.grid(alpha=0.3, which="both")
    axis.legend(fontsize=8)
    figure.savefig(path, dpi=80)
    plt.close(figure)
