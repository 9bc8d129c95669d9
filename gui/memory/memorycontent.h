// SPDX-License-Identifier: GPL-3.0-or-later
// What a view of memory over time shows: the curves of the devices on the side that is chosen, with the other side, or
// the state before a drag, as outlines.
#pragma once

#include "gui/document/document.h"
#include "gui/memory/memorycurve.h"

#include <functional>
#include <vector>

namespace pipewright {

struct MemoryContent {
    const Design& design;
    const Prediction* prediction = nullptr;     ///< null: the placed blocks cannot run
    const Document::Overlay* overlay = nullptr; ///< null: none
    Side side = Side::Predicted;                ///< Predicted without an overlay
    const Prediction* present = nullptr;        ///< during a drag: the state before it, for comparison
    int device = 0;                             ///< the one that is shown large
    std::optional<PendingMemory> pending{};     ///< set: the prediction has no memory curves yet

    bool comparesDrag() const { return present && prediction && present != prediction && !pending; }
    std::size_t samples() const; ///< of all curves
};

/// Up to which all devices are shown at once: more would be too slow to copy at every move of a drag.
inline constexpr std::size_t mostMemorySamples = 200'000;

/// One per device; curves of those that are `wanted` only, copied. O(samples).
std::vector<MemoryOfDevice> memoryOfDevices(const MemoryContent& content, const std::function<bool(int)>& wanted);

/// Bytes at the upper edge of plots of these devices, one scale for all: above the peaks and, unless it is far above
/// them, the limit.
double topOfPlots(const std::vector<const MemoryOfDevice*>& devices);

} // namespace pipewright
