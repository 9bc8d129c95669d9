// SPDX-License-Identifier: GPL-3.0-or-later
// A layout that is accepted is the same after writing and reading it.
#include "core/exchange/megatronlayout.h"
#include "structured.h"
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

/// A stretch is repeated as a group, comes twice, goes, or a layer or a number takes its place.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    fuzz::Random random(seed + 5);
    if (size == 0 || fuzz::below(random, 2) == 0)
        return LLVMFuzzerMutate(data, size, most);
    const std::string text(reinterpret_cast<const char*>(data), size);
    const std::size_t begin = fuzz::below(random, size + 1), length = fuzz::below(random, size - begin + 1);
    const std::string before = text.substr(0, begin), part = text.substr(begin, length),
                      behind = text.substr(begin + length);
    const char* const numbers[] = {"0", "1", "2", "7", "61", "65536", "65537", "2147483648", "99999999999999999999",
                                   "-1"};
    const char* const layers[] = {"t", "E", "m", "L", "|", "||", ",", "*", "(", ")", " ", "\n", "d"};
    const std::string number = numbers[fuzz::below(random, std::size(numbers))];
    switch (fuzz::below(random, 6)) {
    case 0: return fuzz::replaceBy(before + "(" + part + ")*" + number + behind, data, size, most);
    case 1: return fuzz::replaceBy(before + part + "*" + number + behind, data, size, most);
    case 2: return fuzz::replaceBy(before + part + part + behind, data, size, most);
    case 3: return fuzz::replaceBy(before + behind, data, size, most);
    case 4: return fuzz::replaceBy(before + number + behind, data, size, most);
    default: return fuzz::replaceBy(before + layers[fuzz::below(random, std::size(layers))] + behind, data, size, most);
    }
}
