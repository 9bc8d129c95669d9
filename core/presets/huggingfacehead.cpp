// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/presets/huggingfacehead.h"

#include <algorithm>
#include <span>

namespace pipewright {

namespace {

struct NamedHead {
    std::string_view end; ///< of the class's name
    ClassHead of;
};
constexpr NamedHead decoderHeads[] = {{"ForCausalLM", {}},
                                      {"LMHeadModel", {}},
                                      {"ForSequenceClassification", {Head::SequenceLabels, 0, false}},
                                      {"ForTokenClassification", {Head::TokenLabels, 0, false}},
                                      {"ForQuestionAnswering", {Head::TokenLabels, 2, false}},
                                      {"Qwen2ForRewardModel", {Head::Reward, 1, false}},
                                      {"Qwen2ForProcessRewardModel", {Head::Reward, 2, false}}};
constexpr NamedHead encoderHeads[] = {{"ForMaskedLM", {}},
                                      {"ForSequenceClassification", {Head::SequenceLabels, 0, false}},
                                      {"ForTokenClassification", {Head::TokenLabels, 0, false}},
                                      {"ForQuestionAnswering", {Head::TokenLabels, 2, false}}};

std::span<const NamedHead> headsOf(bool encoder)
{
    return encoder ? std::span<const NamedHead>(encoderHeads) : decoderHeads;
}

} // namespace

std::optional<ClassHead> headOfClass(std::string_view name, const HuggingFaceType& type, bool encoder)
{
    if (name == type.bareClass)
        return ClassHead{encoder ? Head::Own : Head::None, 0, false};
    const auto heads = headsOf(encoder);
    const auto found =
        std::find_if(heads.begin(), heads.end(), [&](const NamedHead& known) { return name.ends_with(known.end); });
    return found == heads.end() ? std::nullopt : std::optional(found->of);
}

std::vector<std::string> knownClasses(const HuggingFaceType& type, bool encoder)
{
    std::vector<std::string> names{std::string(type.bareClass)};
    for (const NamedHead& head : headsOf(encoder))
        names.push_back("…" + std::string(head.end));
    return names;
}

} // namespace pipewright
