// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/frameworkmemory.h"

#include "core/base/formattedtext.h"

#include <fmt/format.h>

#include <cmath>

namespace pipewright {

std::string frameworkNames()
{
    std::vector<std::string_view> names;
    for (const FrameworkFacts& facts : frameworks)
        names.push_back(facts.name);
    return joined(names, ", ");
}

std::vector<std::string> wordsOf(const FrameworkMemory& framework)
{
    std::vector<std::string> words;
    const auto say = [&words](bool holds, std::string text) {
        if (holds)
            words.push_back(std::move(text));
    };
    say(framework.loss == FrameworkMemory::Loss::InPlace, "a loss that overwrites the logits by their gradient");
    say(framework.loss == FrameworkMemory::Loss::Plain, "a loss with fp32 copies of logits and gradients");
    say(framework.wideParameters, "parameters in fp32, without master copies");
    say(framework.narrowInputs, "narrow copies of what products in FP8 or NVFP4 read");
    say(framework.narrowGradients, "gradients summed in the model's type");
    say(framework.vocabularyMultiple > 1,
        fmt::format("a vocabulary padded to multiples of {}", framework.vocabularyMultiple));
    say(framework.wholeVocabularyGradients, "whole gradients of embedding and head beside their sums");
    say(framework.gradientPlaceholders, "a gradient for each shape of matrix that nobody reads");
    say(framework.gatheredSequence, "the head's input gathered of sequence-parallel members");
    say(framework.expertsWeightedEarly, "no outputs of experts, which are weighted before");
    say(framework.attentionInBothLayouts, "attention's result both ways on context-parallel members");
    say(framework.buffers > 0, formatSize(framework.buffers) + " of buffers");
    return words;
}

std::optional<Diagnostic> whyNotAllocated(const FrameworkMemory& framework)
{
    if (framework == FrameworkMemory{})
        return std::nullopt;
    return Diagnostic{Severity::Error, "model.framework",
                      fmt::format("what a framework keeps besides ({}) is predicted, and no run here allocates it",
                                  nameOf(framework)),
                      "make the design with --framework none, or run it with --scale framework=none"};
}

Bytes reservedBytes(Bytes allocated, const FrameworkMemory& framework)
{
    return framework.cached > 0 ? std::llround(static_cast<double>(allocated) / (1 - framework.cached)) : 0;
}

} // namespace pipewright
