// SPDX-License-Identifier: GPL-3.0-or-later
// A design file that is accepted is the same after writing and reading it.
#include "core/files/designfile.h"
#include "structured.h"
#include "survive.h"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    Design design;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (fuzz::survives([&] { design = designFromJson(text, "file"); }))
        fuzz::require(designFromJson(designToJson(design), "again") == design);
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    return fuzz::mutateJson(data, size, most, seed);
}
