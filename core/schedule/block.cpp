// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/block.h"

#include <algorithm>
#include <charconv>

namespace pipewright {

namespace {

/// Reads a number at the front of `text` and removes it; plain digits only, no sign, no leading zeros.
std::optional<std::int32_t> takeNumber(std::string_view& text)
{
    std::int32_t value = 0;
    if (text.empty() || text.front() < '0' || text.front() > '9')
        return std::nullopt;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const auto length = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || (length > 1 && text.front() == '0'))
        return std::nullopt;
    text.remove_prefix(length);
    return value;
}

} // namespace

std::string toString(const Block& block)
{
    std::string text(1, letter(block.op));
    text += std::to_string(block.stage);
    text += '.';
    text += std::to_string(block.microbatch);
    if (block.replica != 0)
        text += '/' + std::to_string(block.replica);
    return text;
}

std::optional<Block> parseBlock(std::string_view text)
{
    if (text.empty())
        return std::nullopt;
    const auto* const op =
        std::find_if(allOps.begin(), allOps.end(), [&](Op known) { return letter(known) == text.front(); });
    if (op == allOps.end())
        return std::nullopt;
    text.remove_prefix(1);
    Block block;
    block.op = *op;
    const auto stage = takeNumber(text);
    if (!stage || text.empty() || text.front() != '.')
        return std::nullopt;
    text.remove_prefix(1);
    const auto microbatch = takeNumber(text);
    if (!microbatch)
        return std::nullopt;
    block.stage = *stage;
    block.microbatch = *microbatch;
    if (!text.empty()) {
        if (text.front() != '/')
            return std::nullopt;
        text.remove_prefix(1);
        const auto replica = takeNumber(text);
        if (!replica || *replica == 0 || !text.empty())
            return std::nullopt;
        block.replica = *replica;
    }
    return block;
}

} // namespace pipewright
