// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/transfer.h"

#include <fmt/format.h>

#include <charconv>

namespace pipewright {

std::string textOf(const Transfer& transfer)
{
    if (transfer.isCollective())
        return fmt::format("{} collective {}", toString(transfer.producer), transfer.collective);
    return fmt::format("{} to {}", toString(transfer.producer), transfer.destination);
}

std::optional<Transfer> parseTransfer(std::string_view text)
{
    struct Form {
        std::string_view joint;
        std::int32_t Transfer::*number;
    };
    for (const Form& form : {Form{" to ", &Transfer::destination}, Form{" collective ", &Transfer::collective}}) {
        const std::size_t at = text.find(form.joint);
        if (at == std::string_view::npos)
            continue;
        const std::optional<Block> producer = parseBlock(text.substr(0, at));
        const std::string_view number = text.substr(at + form.joint.size());
        Transfer transfer;
        const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), transfer.*form.number);
        if (!producer || number.empty() || number.front() == '-' || error != std::errc()
            || end != number.data() + number.size())
            return std::nullopt;
        transfer.producer = *producer;
        return transfer;
    }
    return std::nullopt;
}

} // namespace pipewright
