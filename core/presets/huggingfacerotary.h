// SPDX-License-Identifier: GPL-3.0-or-later
// Rotary positions in Hugging Face configurations: rope_theta and rope_scaling in older files, rope_parameters in newer
// ones, which hold an object for each kind of layer where full and windowed attention differ.
#pragma once

#include "core/base/diagnostic.h"
#include "core/json/locatedjson.h"
#include "core/model/modelshape.h"
#include "core/presets/huggingfacetypes.h"

namespace pipewright {

struct RotaryPositions {
    Rotary all;
    double windowedBase = 0; ///< of layers with a window; 0: as in the others
};

/// Of a configuration completed by completedConfig(). Adds faults, and notes of what is left out.
RotaryPositions readRotaryPositions(const LocatedJson& config, const HuggingFaceType& type, Diagnostics& faults,
                                    Diagnostics& notes);

} // namespace pipewright
