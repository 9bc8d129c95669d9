// SPDX-License-Identifier: GPL-3.0-or-later
// Parses and formats durations and sizes in integer arithmetic of 128 bits, so that text round-trips exactly. O(text).
#include "core/base/units.h"

#include "core/base/diagnostic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>

namespace pipewright {

namespace {

__extension__ typedef __int128 Wide; // digits × unit can exceed 64 bits

struct Unit {
    std::string_view name;
    std::int64_t scale;
};

// Largest first, so that the formatters can take the first that fits.
constexpr std::array durationUnits{Unit{"min", 60'000'000'000}, Unit{"s", 1'000'000'000}, Unit{"ms", 1'000'000},
                                   Unit{"us", 1'000},           Unit{"µs", 1'000},        Unit{"ns", 1}};
constexpr std::array sizeUnits{Unit{"TiB", std::int64_t(1) << 40},
                               Unit{"GiB", 1 << 30},
                               Unit{"MiB", 1 << 20},
                               Unit{"KiB", 1 << 10},
                               Unit{"B", 1},
                               Unit{"TB", 1'000'000'000'000},
                               Unit{"GB", 1'000'000'000},
                               Unit{"MB", 1'000'000},
                               Unit{"KB", 1'000},
                               Unit{"kB", 1'000}};
constexpr std::size_t binarySizeUnits = 5; // the formatters use these only

constexpr Nanoseconds longestDuration = std::int64_t(100) * 24 * 3'600 * 1'000'000'000;
constexpr Bytes largestSize = std::int64_t(1) << 60;

struct Words {
    std::string_view noun;    // "duration"
    std::string_view example; // "18.5ms"
    std::string_view units;   // "ns, us, ms, s, min"
};
constexpr Words durationWords{"duration", "18.5ms", "ns, us, ms, s or min"};
constexpr Words sizeWords{"size", "80GiB", "B, KiB, MiB, GiB, TiB, KB, MB, GB or TB"};

bool isDigit(char c)
{
    return c >= '0' && c <= '9';
}

[[noreturn]] void fail(std::string_view where, std::string what, std::string hint)
{
    throw Error(std::string(where), std::move(what), std::move(hint));
}

// Reads digits[.digits][ ]unit without ever going through a double, rounded to whole base units: a program that printed
// a double has digits beyond them. At most `limit` base units.
std::int64_t parseQuantity(std::string_view text, std::string_view where, std::span<const Unit> units,
                           const Words& words, std::int64_t limit, std::string_view limitText)
{
    const std::string example = "write for example " + std::string(words.example);
    const auto tooLarge = [&]() {
        fail(where, inQuotes(text) + " is larger than any " + std::string(words.noun) + " that makes sense",
             "at most " + std::string(limitText));
    };
    if (!text.empty() && text.front() == '-')
        fail(where, "a " + std::string(words.noun) + " cannot be negative, and " + inQuotes(text) + " is", example);

    std::size_t at = 0;
    Wide digits = 0;    // all digits, the point left out
    int afterPoint = 0; // how many of them stood after it
    int zeros = 0;      // trailing zeros after the point, added only when a digit follows
    bool anyDigit = false, point = false;
    constexpr Wide enough = Wide(1'000'000'000'000'000'000) * 1'000'000; // 24 digits: beyond every limit
    for (; at < text.size() && (isDigit(text[at]) || (text[at] == '.' && !point)); ++at) {
        if (text[at] == '.') {
            point = true;
            continue;
        }
        anyDigit = true;
        const int digit = text[at] - '0';
        if (!point) {
            digits = digits * 10 + digit;
        } else if (digit == 0) {
            ++zeros;
        } else {
            for (; zeros >= 0 && digits < enough; --zeros, ++afterPoint)
                digits *= 10;
            if (zeros >= 0)
                fail(where, inQuotes(text) + " has more digits than can be kept", example);
            zeros = 0;
            digits += digit;
        }
        if (digits >= enough) {
            if (!point)
                tooLarge();
            fail(where, inQuotes(text) + " has more digits than can be kept", example);
        }
    }
    if (!anyDigit || (point && text[at - 1] == '.'))
        fail(where, inQuotes(text) + " is not a " + std::string(words.noun), example);

    std::string_view name = text.substr(at);
    while (!name.empty() && name.front() == ' ')
        name.remove_prefix(1);
    if (name.empty())
        fail(where, "the " + std::string(words.noun) + " " + inQuotes(text) + " has no unit",
             "append " + std::string(words.units));
    std::optional<std::int64_t> scale;
    for (const Unit& unit : units)
        if (unit.name == name)
            scale = unit.scale;
    if (!scale)
        fail(where, inQuotes(name) + " is not a unit of a " + std::string(words.noun),
             "use " + std::string(words.units));

    // Divide by ten while exact, so that digits * scale stays within 128 bits.
    std::int64_t remaining = *scale;
    for (; afterPoint > 0 && remaining % 10 == 0; --afterPoint)
        remaining /= 10;
    Wide value = digits * remaining;
    Wide divisor = 1;
    for (; afterPoint > 0; --afterPoint)
        divisor *= 10;
    value = (value + divisor / 2) / divisor;
    if (value == 0 && digits != 0)
        fail(where, inQuotes(text) + " is less than the smallest " + std::string(words.noun) + " there is",
             "write 0, or 1 " + std::string(units.back().scale == 1 ? units.back().name : "B"));
    if (value > limit)
        tooLarge();
    return static_cast<std::int64_t>(value);
}

// "18.50" -> "18.5", "601.0" -> "601"
std::string withoutTrailingZeros(std::string text)
{
    if (text.find('.') == std::string::npos)
        return text;
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.')
        text.pop_back();
    return text;
}

// `value` with as many decimals as give `significant` digits in total.
std::string significantDigits(double value, int significant)
{
    int before = 1;
    for (double bound = 10; value >= bound && before < significant; bound *= 10)
        ++before;
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%.*f", significant - before, value);
    return withoutTrailingZeros(buffer);
}

} // namespace

Nanoseconds parseDuration(std::string_view text, std::string_view where)
{
    return parseQuantity(text, where, durationUnits, durationWords, longestDuration, "100 days");
}

Nanoseconds toNanoseconds(double seconds)
{
    return std::llround(std::min(seconds * 1e9, static_cast<double>(longestDuration)));
}

Bytes parseSize(std::string_view text, std::string_view where)
{
    return parseQuantity(text, where, sizeUnits, sizeWords, largestSize, "1048576 TiB");
}

std::string formatDuration(Nanoseconds value)
{
    if (value < 0)
        return "-" + formatDuration(value == INT64_MIN ? INT64_MAX : -value);
    // Use a unit slightly early where the smaller one would round up to 1000.
    const auto as = [value](std::int64_t scale, const char* unit) {
        return significantDigits(static_cast<double>(value) / static_cast<double>(scale), 4) + unit;
    };
    if (value < 1'000)
        return std::to_string(value) + " ns";
    if (value < 999'950)
        return as(1'000, " us");
    if (value < 999'950'000)
        return as(1'000'000, " ms");
    if (value < 600'000'000'000)
        return as(1'000'000'000, " s");
    return as(60'000'000'000, " min");
}

std::string formatSize(Bytes value)
{
    if (value < 0)
        return "-" + formatSize(value == INT64_MIN ? INT64_MAX : -value);
    for (const Unit& unit : std::span(sizeUnits).first(binarySizeUnits)) {
        const double quantity = static_cast<double>(value) / static_cast<double>(unit.scale);
        if (unit.scale == 1)
            break;
        if (quantity >= 0.9995) {
            // 1023.7 KiB is shown with four digits instead of as 1.00 MiB.
            return significantDigits(quantity, quantity >= 999.5 ? 4 : 3) + " " + std::string(unit.name);
        }
    }
    return std::to_string(value) + " B";
}

std::string exactDuration(Nanoseconds value)
{
    if (value < 0)
        return "-" + exactDuration(value == INT64_MIN ? INT64_MAX : -value);
    for (const Unit& unit : durationUnits) {
        if (unit.name == "min" || unit.name == "µs" || (value < unit.scale && unit.scale > 1))
            continue;
        std::string text = std::to_string(value / unit.scale);
        if (const std::int64_t rest = value % unit.scale; rest != 0) {
            // scale + rest prints as "1" followed by exactly the digits after the point
            text += '.';
            text += std::to_string(unit.scale + rest).substr(1);
            text = withoutTrailingZeros(text);
        }
        return value == 0 ? "0ns" : text + std::string(unit.name);
    }
    return "0ns";
}

std::string exactSize(Bytes value)
{
    for (const Unit& unit : std::span(sizeUnits).first(binarySizeUnits))
        if (value != 0 && value % unit.scale == 0)
            return std::to_string(value / unit.scale) + std::string(unit.name);
    return "0B";
}

} // namespace pipewright
