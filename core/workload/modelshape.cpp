// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workload/modelshape.h"

namespace pipewright {

ModelShape::ModelShape() = default;
ModelShape::ModelShape(const ModelShape& other) = default;
ModelShape::ModelShape(ModelShape&& other) noexcept = default;
ModelShape& ModelShape::operator=(const ModelShape& other) = default;
ModelShape& ModelShape::operator=(ModelShape&& other) noexcept = default;
ModelShape::~ModelShape() = default;
bool ModelShape::operator==(const ModelShape& other) const = default;

} // namespace pipewright
