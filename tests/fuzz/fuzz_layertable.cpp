// SPDX-License-Identifier: GPL-3.0-or-later
// A table of layers that is accepted has at least one, and no time or size below zero.
#include "core/presets/modelfile.h"
#include "structured.h"
#include "survive.h"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    ModelFile file;
    if (fuzz::survives([&] { file = readModelFile(text, "layers.csv"); }))
        fuzz::require(file.shape.layers > 0);
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    return fuzz::mutateTable(data, size, most, seed);
}
