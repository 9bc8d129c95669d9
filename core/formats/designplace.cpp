// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/formats/designplace.h"

#include "core/formats/locatedjson.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

namespace pipewright {

namespace {

/// The number behind `word` in `text`: numberAfter("device 1, position 3", "position ") is "3".
std::string numberAfter(const std::string& text, const std::string& word)
{
    const std::size_t at = text.find(word);
    if (at == std::string::npos)
        return {};
    const std::size_t begin = at + word.size();
    return text.substr(begin, std::min(text.find_first_not_of("0123456789", begin), text.size()) - begin);
}

/// The JSON pointer that a place of core/schedule or core/program names; empty when it names none.
std::string pointerOf(const std::string& where)
{
    if (where.starts_with("device ")) {
        std::string pointer = "/schedule/order/" + numberAfter(where, "device ");
        if (const std::string position = numberAfter(where, "position "); !position.empty())
            pointer += "/" + position;
        return pointer;
    }
    std::string pointer = "/" + where.substr(0, where.find(','));
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    if (const std::string stage = numberAfter(where, ", stage "); !stage.empty())
        pointer += "/" + stage;
    return pointer.find(' ') == std::string::npos ? pointer : std::string();
}

std::optional<LocatedJson> parsed(const std::string& file)
{
    std::ifstream stream(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    try {
        return parseLocatedJson(text, file);
    } catch (const Error&) {
        return std::nullopt;
    }
}

} // namespace

Diagnostics placedInFile(Diagnostics diagnostics, const std::string& file)
{
    if (file.empty() || diagnostics.empty())
        return diagnostics;
    const std::optional<LocatedJson> json = parsed(file);
    for (Diagnostic& diagnostic : diagnostics) {
        const std::string pointer = pointerOf(diagnostic.where);
        if (!diagnostic.where.empty())
            diagnostic.what = diagnostic.where + ": " + diagnostic.what;
        diagnostic.where = json && !pointer.empty() ? json->placeOf(pointer) : file;
    }
    return diagnostics;
}

} // namespace pipewright
