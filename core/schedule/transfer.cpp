// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/transfer.h"

#include <fmt/format.h>

#include <charconv>

namespace pipewright {

std::string textOf(const Transfer& transfer)
{
    return fmt::format("{} to {}", toString(transfer.producer), transfer.destination);
}

std::optional<Transfer> parseTransfer(std::string_view text)
{
    constexpr std::string_view joint = " to ";
    const std::size_t at = text.find(joint);
    if (at == std::string_view::npos)
        return std::nullopt;
    const std::optional<Block> producer = parseBlock(text.substr(0, at));
    const std::string_view number = text.substr(at + joint.size());
    Transfer transfer;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), transfer.destination);
    if (!producer || number.empty() || number.front() == '-' || error != std::errc()
        || end != number.data() + number.size())
        return std::nullopt;
    transfer.producer = *producer;
    return transfer;
}

} // namespace pipewright
