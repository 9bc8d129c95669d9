// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/design/design.h"

namespace pipewright {

Design::Design() = default;
Design::Design(const Design& other) = default;
Design::Design(Design&& other) noexcept = default;
Design& Design::operator=(const Design& other) = default;
Design& Design::operator=(Design&& other) noexcept = default;
Design::~Design() = default;
bool Design::operator==(const Design& other) const = default;

} // namespace pipewright
