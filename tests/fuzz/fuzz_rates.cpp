// SPDX-License-Identifier: GPL-3.0-or-later
// Rates that are accepted give every shape a rate above zero, and those that they list their own.
#include "core/rates/ratesfile.h"
#include "structured.h"
#include "survive.h"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    OperationRates rates;
    if (!fuzz::survives([&] { rates = parseRates(text, "rates.json"); }))
        return 0;
    for (const RateTable& table : rates.tables) {
        for (const MeasuredRate& shape : table.shapes)
            fuzz::require(rateIn(table, shape.dims).perSecond == table.peak * shape.share);
        const Rate rate = rateIn(table, {3, 5, 7, 11, 13});
        fuzz::require(table.peak == 0 || rate.perSecond > 0);
    }
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    return fuzz::mutateJson(data, size, most, seed);
}
