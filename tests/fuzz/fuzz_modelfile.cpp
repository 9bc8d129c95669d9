// SPDX-License-Identifier: GPL-3.0-or-later
// A model file, ours or Hugging Face's, that is accepted describes layers whose numbers can be worked with.
#include "core/model/transformer.h"
#include "core/presets/modelfile.h"
#include "structured.h"
#include "survive.h"

#include <cmath>

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    ModelFile file;
    if (!fuzz::survives([&] { file = readModelFile(text, "folder/config.json"); }))
        return 0;
    fuzz::require(checkShape(file.shape).empty());
    if (file.shape.layers > 4'096)
        return 0; // right, and slow
    for (const Layer& layer : layersOf(file.shape))
        fuzz::require(std::isfinite(layer.forwardFlops) && layer.parameters >= 0 && layer.outputBytes >= 0);
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    return fuzz::mutateJson(data, size, most, seed);
}
