// SPDX-License-Identifier: GPL-3.0-or-later
// Windows of a file of tokens lie in it and in the vocabulary, or it is refused with a reason.
#include "executor/training/tokendata.h"
#include "structured.h"
#include "survive.h"
#include "temporaryfile.h"

#include <algorithm>
#include <vector>

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static const fuzz::TemporaryFile two(".u16"), four(".u32");
    ModelShape shape;
    shape.sequence = size > 0 ? 1 + data[0] % 16 : 4;
    shape.microbatchSize = 2;
    shape.vocabulary = size > 1 ? 1 + data[1] * 8 : 256;
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(shape.sequence * shape.microbatchSize)), targets(tokens);
    for (const fuzz::TemporaryFile* file : {&two, &four}) {
        file->fill(data, size);
        fuzz::survives([&] {
            const TokenData all = TokenData::fromFile(file->path(), shape, 7, 2);
            all.sample(0, 0, tokens, targets);
            for (const auto* list : {&tokens, &targets})
                fuzz::require(std::all_of(list->begin(), list->end(),
                                          [&](std::int32_t token) { return token >= 0 && token < shape.vocabulary; }));
            all.part(shape, true, 7).sample(3, 1, tokens, targets);
            all.part(shape, false, 7).sample(3, 1, tokens, targets);
        });
    }
    return 0;
}

/// Some of the numbers, of two bytes or four.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    return fuzz::mutateNumbers(data, size, most, seed, seed % 2 == 0 ? 2 : 4);
}
