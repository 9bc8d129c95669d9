// SPDX-License-Identifier: GPL-3.0-or-later
// Lines of the zero-bubble tools that are accepted give a valid schedule.
#include "core/exchange/saillines.h"
#include "core/schedule/validate.h"
#include "structured.h"
#include "survive.h"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    Imported imported;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (fuzz::survives([&] { imported = importSailLines(text, "file"); }))
        fuzz::require(!hasErrors(validate(imported.design.schedule)));
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    return fuzz::mutateTable(data, size, most, seed);
}
