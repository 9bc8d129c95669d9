// SPDX-License-Identifier: GPL-3.0-or-later
// Lists and formatted pieces as text. fmt::join and fmt::format_to are templates: every room that used them itself
// would spend half a second to three seconds on compiling them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace pipewright {

/// The values with `separator` between any two: "a, b, c"; empty when there are none.
std::string joined(std::span<const std::string> values, std::string_view separator);
std::string joined(std::span<const std::string_view> values, std::string_view separator);
std::string joined(std::span<const int> values, std::string_view separator);
std::string joined(std::span<const std::int64_t> values, std::string_view separator);
std::string joined(std::span<const std::size_t> values, std::string_view separator);

/// Appends what fmt::vformat(format, arguments) returns.
void appendFormatted(std::string& text, fmt::string_view format, fmt::format_args arguments);

/// Appends what fmt::format(format, values…) returns.
template<class... Values>
void appendFormatted(std::string& text, fmt::format_string<Values...> format, const Values&... values)
{
    appendFormatted(text, fmt::string_view(format), fmt::format_args(fmt::make_format_args(values...)));
}

} // namespace pipewright
