// SPDX-License-Identifier: GPL-3.0-or-later
// A tensor graph that is accepted is the same after writing and reading it.
#include "core/files/tensorgraphfile.h"
#include "structured.h"
#include "survive.h"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    GraphFile file;
    if (fuzz::survives([&] { file = graphFileFromJson(text, "graph"); })) {
        const std::string written = graphFileToJson(file);
        fuzz::require(graphFileToJson(graphFileFromJson(written, "again")) == written);
    }
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    return fuzz::mutateJson(data, size, most, seed);
}
