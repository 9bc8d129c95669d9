# SPDX-License-Identifier: GPL-3.0-or-later
"""How far one tensor is from another that should equal it."""

import torch

BOUNDS = {torch.float64: 1e-9, torch.float32: 1e-4}  # differences from another order of sums; other types are 16-bit
COARSE = 5e-2


def bound_of(dtype):
    return BOUNDS.get(dtype, COARSE)


def same(got, expected):
    """Whether every element is the same number; a NaN is the same as a NaN."""
    return bool(((got == expected) | (got.isnan() & expected.isnan())).all())


def relative_error(got, expected):
    """‖difference‖ / ‖expected‖, over the elements that are not the same; infinite where only one is finite."""
    if same(got, expected):
        return 0.0
    got, expected = got.double(), expected.double()
    alike = (got == expected) | (got.isnan() & expected.isnan())
    difference = torch.where(alike, torch.zeros_like(got), got - expected)
    if not difference.isfinite().all():
        return float("inf")
    size = torch.where(expected.isfinite(), expected, torch.zeros_like(expected)).norm().item()
    return difference.norm().item() / size if size > 0 else 1.0
