// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/formattedtext.h"

namespace pipewright {

namespace {

template<class Values>
std::string joinedOf(const Values& values, std::string_view separator)
{
    return fmt::to_string(fmt::join(values.begin(), values.end(), separator));
}

} // namespace

std::string joined(std::span<const std::string> values, std::string_view separator)
{
    return joinedOf(values, separator);
}

std::string joined(std::span<const std::string_view> values, std::string_view separator)
{
    return joinedOf(values, separator);
}

std::string joined(std::span<const int> values, std::string_view separator)
{
    return joinedOf(values, separator);
}

std::string joined(std::span<const std::int64_t> values, std::string_view separator)
{
    return joinedOf(values, separator);
}

std::string joined(std::span<const std::size_t> values, std::string_view separator)
{
    return joinedOf(values, separator);
}

void appendFormatted(std::string& text, fmt::string_view format, fmt::format_args arguments)
{
    fmt::memory_buffer buffer;
    fmt::vformat_to(fmt::appender(buffer), format, arguments);
    text.append(buffer.data(), buffer.size());
}

} // namespace pipewright
