// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/diagnostic.h"

#include "core/base/utf8.h"

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
        diagnostics.push_back({Severity::Error, {}, "an operation failed without a description", {}});
    return diagnostics;
}

} // namespace

Diagnostic::Diagnostic(Severity severity_, std::string_view where_, std::string_view what_, std::string_view hint_)
    : severity(severity_), where(where_), what(what_), hint(hint_)
{
}

std::string inQuotes(std::string_view text)
{
    constexpr std::size_t longest = 40;
    std::string result = "\"";
    std::size_t at = 0;
    while (at < std::min(longest, text.size())) {
        const Utf8Character character = firstCharacter(text.substr(at));
        if (at + character.length > longest)
            break;
        if (isPrintable(character))
            result += text.substr(at, character.length);
        else
            result.append(character.length, '?');
        at += character.length;
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

Error::Error(std::string_view where, std::string_view what, std::string_view hint)
    : Error(Diagnostics{{Severity::Error, where, what, hint}})
{
}

} // namespace pipewright
