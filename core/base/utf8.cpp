// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/utf8.h"

#include <fmt/format.h>

#include <cstdint>

namespace pipewright {

namespace {

bool isNoncharacter(char32_t code)
{
    return (code & 0xfffe) == 0xfffe || (code >= 0xfdd0 && code <= 0xfdef);
}

} // namespace

Utf8Character firstCharacter(std::string_view text)
{
    const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const Utf8Character invalid{byte(0), 1, false};
    if (byte(0) < 0x80)
        return {byte(0), 1, true};
    const std::size_t length = byte(0) < 0xc2 ? 0 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : byte(0) < 0xf5 ? 4 : 0;
    if (length == 0 || length > text.size())
        return invalid;
    char32_t code = byte(0) & (0xffu >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80)
            return invalid;
        code = code << 6 | (byte(i) & 0x3f);
    }
    constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < least[length] || surrogate || code > 0x10ffff ? invalid : Utf8Character{code, length, true};
}

bool isPrintable(const Utf8Character& character)
{
    const char32_t code = character.code;
    const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    const bool directs = code == 0x061c || (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e)
                         || (code >= 0x2060 && code <= 0x206f);
    return character.valid && !control && !directs;
}

std::string shortened(std::string_view text, std::size_t most)
{
    std::size_t end = 0;
    for (std::size_t count = 0; end < text.size(); ++count) {
        if (count == most)
            return std::string(text.substr(0, end)) + "…";
        end += firstCharacter(text.substr(end)).length;
    }
    return std::string(text);
}

std::string escapedForTerminal(std::string_view text)
{
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        const Utf8Character character = firstCharacter(text);
        const auto code = static_cast<std::uint32_t>(character.code);
        if (isPrintable(character) || character.code == '\n' || character.code == '\t')
            result += text.substr(0, character.length);
        else
            result += character.valid ? fmt::format("\\u{:04x}", code) : fmt::format("\\x{:02x}", code);
        text.remove_prefix(character.length);
    }
    return result;
}

std::string escapedForMarkup(std::string_view text)
{
    std::string result;
    while (!text.empty()) {
        const Utf8Character character = firstCharacter(text);
        const bool control = character.code < 0x20 && character.code != '\n' && character.code != '\t';
        if (!character.valid || control || isNoncharacter(character.code))
            result += "\xef\xbf\xbd";
        else if (character.code == '&')
            result += "&amp;";
        else if (character.code == '<')
            result += "&lt;";
        else if (character.code == '>')
            result += "&gt;";
        else if (character.code == '"')
            result += "&quot;";
        else
            result += text.substr(0, character.length);
        text.remove_prefix(character.length);
    }
    return result;
}

} // namespace pipewright
