// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/memorylimit.h"

#include "core/base/diagnostic.h"
#include "core/base/units.h"

#include <cmath>
#include <cstdlib>
#include <string_view>

namespace pipewright::app {

std::optional<double> parseFactor(const std::string& text)
{
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || std::string_view(end) != "x")
        return std::nullopt;
    if (!std::isfinite(value) || value <= 0 || value > 1e6)
        throw Error("--memory-limit", "\"" + text + "\" is no memory limit", "write a positive factor, such as 1.5x");
    return value;
}

MemoryLimit parseMemoryLimit(const std::string& text)
{
    MemoryLimit limit;
    if (text.empty())
        return limit;
    limit.factor = parseFactor(text);
    if (!limit.factor)
        limit.bytes = parseSize(text, "--memory-limit");
    return limit;
}

} // namespace pipewright::app
