// SPDX-License-Identifier: GPL-3.0-or-later
// A design with a smaller model, so that a workstation can try a design for many large devices: the same schedule and
// width with fewer layers, a smaller vocabulary, or other changed fields of the model file. A report keeps the scaled
// fields and the conclusions for the full model.
#pragma once

#include "core/design/design.h"
#include "core/presets/scaledshape.h"

#include <string>
#include <vector>

namespace pipewright {

struct ScaleReport {
    std::vector<ScaledField> fields;
    // Predicted with the design's costs.
    Nanoseconds fullMakespan = 0, scaledMakespan = 0;
    std::vector<Bytes> fullPeaks; ///< per device

    /// The full model's step on the machine that took `measured` for the scaled one, scaled by the predicted ratio.
    Nanoseconds fullStep(Nanoseconds measured) const;
    std::string text() const; ///< "layers 80 to 8, vocabulary 128256 to 32000"
};

struct ScaledDesign {
    Design design;
    ScaleReport report;
};

/// `scale` as scaledShape() takes it; pinned blocks begin earlier as their stages become quicker. Throws Error: no
/// model, a field that no model file has, sizes that do not fit.
ScaledDesign scaledDesign(const Design& full, const std::string& scale);

} // namespace pipewright
