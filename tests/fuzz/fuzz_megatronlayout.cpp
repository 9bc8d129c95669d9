// SPDX-License-Identifier: GPL-3.0-or-later
// A layout that is accepted is the same after writing and reading it.
#include "core/exchange/megatronlayout.h"
#include "survive.h"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    std::vector<std::string> stages;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (fuzz::survives([&] { stages = parseMegatronLayout(text, "layout"); }))
        fuzz::require(parseMegatronLayout(megatronLayoutText(stages), "again") == stages);
    return 0;
}
