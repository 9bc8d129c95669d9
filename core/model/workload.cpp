// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/workload.h"

namespace pipewright {

Workload::Workload() = default;
Workload::Workload(const Workload& other) = default;
Workload::Workload(Workload&& other) noexcept = default;
Workload& Workload::operator=(const Workload& other) = default;
Workload& Workload::operator=(Workload&& other) noexcept = default;
Workload::~Workload() = default;
bool Workload::operator==(const Workload& other) const = default;

} // namespace pipewright
