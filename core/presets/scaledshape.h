// SPDX-License-Identifier: GPL-3.0-or-later
// A model with changed fields, as keys and values of a model file.
#pragma once

#include "core/model/modelshape.h"

#include <string>
#include <vector>

namespace pipewright {

/// A field of a model that was made smaller for a run on this machine.
struct ScaledField {
    std::string key, before, after; ///< "layers", "80", "8"
};
struct ScaledShape {
    ModelShape shape;
    std::vector<ScaledField> fields; ///< those that changed
};
/// `scale`: keys of a model file and their values, "layers=8,vocabulary=32000,data_type=fp32,dropout=off". Throws Error
/// with checkShape()'s diagnostics, and for keys and values that a model file does not have.
ScaledShape scaledShape(const ModelShape& shape, const std::string& scale);

} // namespace pipewright
