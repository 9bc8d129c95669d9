// SPDX-License-Identifier: GPL-3.0-or-later
// A recursive-descent parser of the layout string, and the inverse by run lengths of equal layers and stages.
// O(layers).
#include "core/exchange/megatronlayout.h"

#include "core/base/textcells.h"
#include "core/families/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pipewright {

namespace {

/// The layer's letter in Megatron's --pipeline-model-parallel-layout.
char letterOf(LayerKind kind)
{
    switch (kind) {
    case LayerKind::Embedding: return 'E';
    case LayerKind::Head: return 'L';
    case LayerKind::Transformer:
    case LayerKind::Mlp:
    case LayerKind::Other: return 't';
    }
    return 't';
}

constexpr std::size_t longestExpansion = 65'536;
constexpr std::string_view layerLetters = "EtmL";

class LayoutParser {
public:
    LayoutParser(std::string_view text, const std::string& source) : m_text(text), m_source(source) {}

    std::string expanded()
    {
        std::string result;
        while (m_at < m_text.size())
            add(result, item(true));
        return result;
    }

private:
    [[noreturn]] void fail(std::string what, std::string hint = {}) const
    {
        throw Error(m_source, fmt::format("character {}: {}", m_at + 1, what), std::move(hint));
    }

    void add(std::string& result, const std::string& part) const
    {
        if (result.size() + part.size() > longestExpansion)
            fail(fmt::format("more than {} stages and layers", longestExpansion));
        result += part;
    }

    /// One letter, bar or group with its repetition; nothing for a comma.
    std::string item(bool groupsAllowed)
    {
        const char c = m_text[m_at];
        std::string part;
        if (c == ',') {
            ++m_at;
            return part;
        }
        if (c == '(') {
            if (!groupsAllowed)
                fail("a group inside a group", "write the inner one out");
            ++m_at;
            while (m_at < m_text.size() && m_text[m_at] != ')')
                add(part, item(false));
            if (m_at == m_text.size())
                fail("the bracket is not closed");
            ++m_at;
            if (part.empty() || m_at == m_text.size() || m_text[m_at] != '*')
                fail("a group is not empty and is followed by * and a number", "for example (tt|)*4");
        } else if (c == '|' || layerLetters.find(c) != std::string_view::npos) {
            part = c;
            ++m_at;
        } else {
            fail(fmt::format("{} is not part of a layout", inQuotes(m_text.substr(m_at, 1))),
                 "E embedding, t transformer layer, m multi-token prediction, L loss, | between stages");
        }
        return m_at < m_text.size() && m_text[m_at] == '*' ? repeated(part) : part;
    }

    std::string repeated(const std::string& part)
    {
        ++m_at;
        std::string_view rest = m_text.substr(m_at);
        const int count = takeNumber(rest, static_cast<int>(longestExpansion));
        if (count < 1)
            fail("a number from 1 on is expected after *");
        m_at = m_text.size() - rest.size();
        std::string result;
        for (int i = 0; i < count; ++i)
            add(result, part);
        return result;
    }

    std::string_view m_text;
    const std::string& m_source;
    std::size_t m_at = 0;
};

std::string stageText(const std::string& layers)
{
    std::string text;
    for (std::size_t i = 0; i < layers.size();) {
        std::size_t end = i;
        while (end < layers.size() && layers[end] == layers[i])
            ++end;
        if (end - i > 2)
            text += fmt::format("{}*{}", layers[i], end - i);
        else
            text.append(layers, i, end - i);
        i = end;
    }
    return text;
}

bool isLooped(const Schedule& schedule)
{
    for (int stage = 0; stage < schedule.stages(); ++stage)
        if (schedule.deviceOfStage[stage] != stage % schedule.devices())
            return false;
    return schedule.stages() % schedule.devices() == 0;
}

} // namespace

std::vector<std::string> parseMegatronLayout(std::string_view layout, const std::string& source)
{
    const std::string expanded = LayoutParser(layout, source).expanded();
    std::vector<std::string> stages(1);
    for (const char c : expanded) {
        if (c == '|')
            stages.emplace_back();
        else
            stages.back() += c;
    }
    if (expanded.find_first_of(layerLetters) == std::string::npos)
        throw Error(source, "the layout has no layer", "for example Ett|tt|tt|ttL");
    return stages;
}

std::vector<int> layersOfLayout(std::string_view layout, const std::string& source, Diagnostics& notes)
{
    const std::vector<std::string> stages = parseMegatronLayout(layout, source);
    std::vector<int> counts;
    std::string layers;
    for (const std::string& stage : stages) {
        const auto predictions = std::count(stage.begin(), stage.end(), 'm');
        counts.push_back(static_cast<int>(std::ssize(stage) - predictions));
        layers += stage;
    }
    const auto predictions = std::erase(layers, 'm');
    if (const std::size_t embedding = layers.rfind('E'); embedding != std::string::npos && embedding > 0)
        throw Error(source, "an embedding (E) behind another layer", "a model begins with its one embedding");
    if (const std::size_t loss = layers.find('L'); loss != std::string::npos && loss + 1 < layers.size())
        throw Error(source, "a loss (L) before another layer", "a model ends with its one head and loss");
    if (predictions > 0)
        notes.push_back(
            {Severity::Note, source,
             fmt::format("{} of multi-token prediction (m) {} left out", predictions, predictions == 1 ? "is" : "are"),
             "models here end with the head; the stages that hold m are predicted without its time"});
    return counts;
}

std::string megatronLayoutText(const std::vector<std::string>& stages)
{
    std::string text;
    for (std::size_t i = 0; i < stages.size();) {
        std::size_t end = i; // the last stage has no bar and stays out of a group
        while (end + 1 < stages.size() && stages[end] == stages[i])
            ++end;
        const std::string stage = stageText(stages[i]);
        if (end - i > 2) {
            text += fmt::format("({}|)*{}", stage, end - i);
            i = end;
            continue;
        }
        text += stage;
        text += ++i < stages.size() ? "|" : "";
    }
    return text;
}

std::optional<MegatronOrder> megatronOrder(const Schedule& schedule)
{
    if (!isLooped(schedule))
        return std::nullopt;
    FamilyParameters parameters;
    parameters.devices = schedule.devices();
    parameters.microbatches = schedule.microbatches;
    const bool interleaved = schedule.chunks() > 1;
    if (interleaved) {
        // The first device runs one group of its first chunk before its second chunk.
        const std::vector<Block>& order = schedule.order.front();
        int group = 0;
        while (group < static_cast<int>(order.size()) && makesActivation(order[group].op) && order[group].stage == 0)
            ++group;
        parameters.chunks = schedule.chunks();
        parameters.group = group;
    }
    if (!interleaved && parameters.devices == 1)
        parameters.chunks = 1;
    // On several devices Megatron combines blocks of interleaved schedules alone.
    for (const bool combined : {false, true})
        try {
            if (combined && !parameters.chunks)
                break;
            const char* const family = combined ? "combined-1f1b" : interleaved ? "interleaved-1f1b" : "1f1b";
            const Schedule megatron = makeSchedule(family, parameters);
            if (megatron.order == schedule.order && megatron.overlaps == schedule.overlaps)
                return MegatronOrder{interleaved ? parameters.group.value_or(0) : 0, combined};
        } catch (const Error&) {
            // No such schedule exists for these numbers.
        }
    return std::nullopt;
}

ExportedText megatronLayout(const Design& given)
{
    requireOneReplica(given, "Megatron-LM");
    ExportedText result;
    const Design design = exportable(given, result.diagnostics);
    if (!design.workload || design.layersPerStage.empty())
        throw Error("model", "a layout says which layers a stage holds, and this design has no model",
                    "give the design a model");
    const Schedule& schedule = design.schedule;
    const std::vector<Layer>& layers = design.workload->layers;
    if (std::accumulate(design.layersPerStage.begin(), design.layersPerStage.end(), std::int64_t{0})
            != static_cast<std::int64_t>(layers.size())
        || design.layersPerStage.size() != schedule.deviceOfStage.size())
        throw Error("layers_per_stage",
                    fmt::format("the partition does not fit {} layers on {} stages", layers.size(), schedule.stages()),
                    "state one number per stage, with embedding and head counted as layers");
    std::vector<std::string> stages;
    std::size_t layer = 0;
    for (const int count : design.layersPerStage) {
        std::string& stage = stages.emplace_back();
        for (int i = 0; i < count; ++i, ++layer)
            stage += letterOf(layers[layer].kind);
    }

    const std::string layout = megatronLayoutText(stages);
    if (parseMegatronLayout(layout, "layout") != stages)
        throw Error("layout", "the layout does not read back as the partition", {});
    result.text = fmt::format("--pipeline-model-parallel-size {}\n--pipeline-model-parallel-layout \"{}\"\n",
                              schedule.devices(), layout);
    const std::optional<MegatronOrder> order = megatronOrder(schedule);
    if (order && order->group > 0)
        result.text += fmt::format("--microbatch-group-size-per-virtual-pipeline-stage {}\n", order->group);
    if (order && order->combined)
        result.text += "--overlap-moe-expert-parallel-comm\n";
    if (!isLooped(schedule))
        result.diagnostics.push_back({Severity::Warning, "schedule.placement",
                                      "Megatron puts stage s on rank s mod p, the design does not",
                                      "its layers will stand on other ranks than drawn"});
    else if (!order)
        result.diagnostics.push_back(
            {Severity::Warning, "schedule.order",
             fmt::format("the order is not Megatron's {}, which is what will run with this layout",
                         schedule.chunks() > 1 ? "interleaved 1F1B" : "1F1B"),
             "the layout carries the partition only; export pytorch-csv for the order"});
    return result;
}

} // namespace pipewright
