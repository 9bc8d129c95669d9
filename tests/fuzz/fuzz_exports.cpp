// SPDX-License-Identifier: GPL-3.0-or-later
// Whatever a design file says, every export of it is written or refused with a reason: JaxPP's class, Megatron's
// layout, configurations, tables and traces. A name goes into all of them.
#include "core/exchange/exchange.h"
#include "core/files/designfile.h"
#include "core/predict/designcheck.h"
#include "structured.h"
#include "survive.h"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    Design design;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (!fuzz::survives([&] { design = designFromJson(text, "file"); }) || design.schedule.blocks() > 10'000)
        return 0;
    (void)checkDesign(design);
    for (const ExportFormat& format : exportFormats())
        fuzz::survives([&] { fuzz::require(!format.write(design, {}).text.empty()); });
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    return fuzz::mutateJson(data, size, most, seed);
}
