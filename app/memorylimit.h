// SPDX-License-Identifier: GPL-3.0-or-later
// The option --memory-limit of commands that find an order: a factor or bytes.
#pragma once

#include "core/search/searchmodel.h"

#include <optional>
#include <string>

namespace pipewright::app {

/// "1.5x"; nothing for what does not end with x. Throws Error (where: "--memory-limit") unless it is positive.
std::optional<double> parseFactor(const std::string& text);

/// "1.5x" or "40GiB"; empty: neither. Throws Error.
MemoryLimit parseMemoryLimit(const std::string& text);

} // namespace pipewright::app
