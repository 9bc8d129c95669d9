// SPDX-License-Identifier: GPL-3.0-or-later
// Which device's peak an edit changes most, and by how much: of all devices, not only of the fullest one.
#pragma once

#include "core/predict/bubbles.h"

#include <span>
#include <vector>

namespace pipewright {

struct PeakChange {
    int device = -1; ///< below 0: no peak changed
    Bytes difference = 0;
};

/// The largest increase; only where nothing grows the largest decrease. One peak per device.
PeakChange peakChange(std::span<const Bytes> before, std::span<const Bytes> after);

std::vector<Bytes> devicePeaks(const Metrics& metrics); ///< per device

} // namespace pipewright
