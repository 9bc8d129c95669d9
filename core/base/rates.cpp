// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/rates.h"

#include "core/base/diagnostic.h"
#include "core/base/textcells.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace pipewright {

namespace {

constexpr std::string_view prefixes = "KMGTPE"; // 1000 times more each

double parseRate(std::string_view text, std::string_view where, std::initializer_list<std::string_view> units,
                 const char* example)
{
    const auto fail = [&](const char* what) {
        throw Error(std::string(where), fmt::format("\"{}\" {}", text, what),
                    fmt::format("write for example {}", example));
    };
    const std::string_view trimmed = withoutBlanks(text);
    double value = 0;
    const auto [rest, error] = std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), value);
    if (error != std::errc() || !std::isfinite(value))
        fail("is no number");
    if (value < 0)
        fail("is negative");
    std::string_view unit = withoutBlanks(trimmed.substr(rest - trimmed.data()));
    const auto known = [&](std::string_view candidate) {
        for (const std::string_view name : units)
            if (candidate == name)
                return true;
        return false;
    };
    if (!unit.empty() && !known(unit)) {
        const auto power = prefixes.find(unit.front() == 'k' ? 'K' : unit.front());
        if (power != std::string_view::npos) {
            value *= std::pow(1000.0, static_cast<double>(power + 1));
            unit.remove_prefix(1);
        }
    }
    if (!known(unit))
        fail(unit.empty() ? "has no unit" : "has an unknown unit");
    return value;
}

std::string formatRate(double value, std::string_view unit)
{
    double scaled = value;
    std::string prefix;
    for (const char next : prefixes) {
        if (scaled < 1000)
            break;
        scaled /= 1000;
        prefix = next;
    }
    // Rates have few digits. A longer number has a rounding error from the scaling: six digits are shown.
    std::string number = fmt::format("{}", scaled);
    if (number.size() > 8)
        number = fmt::format("{:.6g}", scaled);
    return fmt::format("{} {}{}", number, prefix, unit);
}

} // namespace

double parseFlops(std::string_view text, std::string_view where)
{
    return parseRate(text, where, {"FLOP/s", "FLOPS", "FLOP", "FLOPs/s"}, "989 TFLOP/s");
}

double parseBandwidth(std::string_view text, std::string_view where)
{
    return parseRate(text, where, {"B/s", "B"}, "450 GB/s");
}

std::string formatFlops(double flopsPerSecond)
{
    return formatRate(flopsPerSecond, "FLOP/s");
}

std::string formatBandwidth(double bytesPerSecond)
{
    return formatRate(bytesPerSecond, "B/s");
}

} // namespace pipewright
