// SPDX-License-Identifier: GPL-3.0-or-later
// Escapes untrusted text. Names in designs and traces and file names may hold control characters, which a terminal
// would obey, noncharacters, which XML forbids, and bytes that are not UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pipewright {

struct Utf8Character {
    char32_t code = 0;
    std::size_t length = 1; ///< in bytes
    bool valid = false;     ///< otherwise `code` is the byte
};

/// The first character of a text that is not empty.
Utf8Character firstCharacter(std::string_view text);

/// No control character, and none that changes the direction of the text around it.
bool isPrintable(const Utf8Character& character);

/// The text, or its first `most` characters and "…".
std::string shortened(std::string_view text, std::size_t most);

/// For a terminal: what is not printable becomes \u001b, a byte that is no UTF-8 \x9b; line feeds and tabs stay.
/// JSON stays the same value.
std::string escapedForTerminal(std::string_view text);

/// For XML and HTML, also within attributes: characters that both forbid become U+FFFD.
std::string escapedForMarkup(std::string_view text);

} // namespace pipewright
