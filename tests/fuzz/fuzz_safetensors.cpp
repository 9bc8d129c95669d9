// SPDX-License-Identifier: GPL-3.0-or-later
// Of a safetensors file that is accepted every tensor's values can be asked for: as many as its shape says.
#include "executor/run/safetensorsfile.h"
#include "structured.h"
#include "survive.h"
#include "temporaryfile.h"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static const fuzz::TemporaryFile file(".safetensors");
    file.fill(data, size);
    SafetensorsFile tensors;
    if (!fuzz::survives([&] { tensors = SafetensorsFile::open(file.path()); }))
        return 0;
    for (const std::string& name : tensors.names())
        fuzz::survives([&] {
            std::size_t count = 1;
            for (const std::int64_t extent : tensors.shape(name))
                count *= static_cast<std::size_t>(extent);
            fuzz::require(tensors.values(name).size() == count);
        });
    return 0;
}

/// The header alone as JSON, with its length put right most of the time.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    std::uint64_t header = 0;
    if (size > 8)
        std::memcpy(&header, data, 8);
    if (seed % 4 == 0 || header == 0 || header > size - 8)
        return LLVMFuzzerMutate(data, size, most);
    std::string text(reinterpret_cast<const char*>(data) + 8, header);
    const std::string values(reinterpret_cast<const char*>(data) + 8 + header, size - 8 - header);
    text.resize(std::max(text.size(), most - std::min(most, 8 + values.size())));
    text.resize(fuzz::mutateJson(reinterpret_cast<std::uint8_t*>(text.data()), header, text.size(), seed));
    const std::uint64_t length = text.size();
    return fuzz::replaceBy(std::string(reinterpret_cast<const char*>(&length), 8) + text + values, data, size, most);
}
