// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/diagnostic.h"

#include <algorithm>
#include <utility>

namespace pipewright {

namespace {

std::string_view word(Severity severity)
{
    switch (severity) {
    case Severity::Note: return "note";
    case Severity::Warning: return "warning";
    case Severity::Error: break;
    }
    return "error";
}

Diagnostics neverEmpty(Diagnostics diagnostics)
{
    if (diagnostics.empty())
        diagnostics.push_back({Severity::Error, {}, "something went wrong that nobody described", {}});
    return diagnostics;
}

/// Length of the printable UTF-8 character at the front; 0: none.
std::size_t printableLength(std::string_view text)
{
    const auto byte = [text](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const auto continues = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
    const unsigned first = byte(0);
    if (first < 0x80)
        return first >= ' ' && first != 0x7f ? 1 : 0;
    if (first >= 0xc2 && first < 0xe0 && continues(1))
        return first == 0xc2 && byte(1) < 0xa0 ? 0 : 2; // control characters of Latin-1
    if (first >= 0xe0 && first < 0xf0 && continues(1) && continues(2)) {
        const unsigned code = (first & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
        const bool surrogate = code >= 0xd800 && code < 0xe000;
        const bool directs = (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e)
                             || (code >= 0x2060 && code <= 0x206f);
        return code >= 0x800 && !surrogate && !directs ? 3 : 0;
    }
    if (first >= 0xf0 && first < 0xf5 && continues(1) && continues(2) && continues(3)) {
        const unsigned code = (first & 7) << 18 | (byte(1) & 0x3f) << 12;
        return code >= 0x10000 && code < 0x110000 ? 4 : 0;
    }
    return 0;
}

} // namespace

std::string inQuotes(std::string_view text)
{
    constexpr std::size_t longest = 40;
    std::string result = "\"";
    std::size_t at = 0;
    while (at < std::min(longest, text.size())) {
        const std::size_t length = printableLength(text.substr(at));
        if (at + length > longest)
            break;
        if (length == 0)
            result += '?';
        else
            result += text.substr(at, length);
        at += std::max<std::size_t>(length, 1);
    }
    return result + (at < text.size() ? "…\"" : "\"");
}

bool hasErrors(const Diagnostics& diagnostics)
{
    return std::any_of(diagnostics.begin(), diagnostics.end(),
                       [](const Diagnostic& d) { return d.severity == Severity::Error; });
}

std::string toString(const Diagnostic& diagnostic)
{
    std::string text;
    if (!diagnostic.where.empty())
        text.append(diagnostic.where).append(": ");
    text.append(word(diagnostic.severity));
    if (!diagnostic.what.empty())
        text.append(": ").append(diagnostic.what);
    if (!diagnostic.hint.empty())
        text.append(" (").append(diagnostic.hint).append(")");
    return text;
}

std::string toString(const Diagnostics& diagnostics)
{
    std::string text;
    for (const Diagnostic& diagnostic : diagnostics) {
        if (!text.empty())
            text += '\n';
        text += toString(diagnostic);
    }
    return text;
}

Error::Error(Diagnostics diagnostics)
    : std::runtime_error(toString(neverEmpty(diagnostics))), m_diagnostics(neverEmpty(std::move(diagnostics)))
{
}

Error::Error(std::string where, std::string what, std::string hint)
    : Error(Diagnostics{{Severity::Error, std::move(where), std::move(what), std::move(hint)}})
{
}

} // namespace pipewright
