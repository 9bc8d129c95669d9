// SPDX-License-Identifier: GPL-3.0-or-later
// Converts times and bytes of the parameters into the units that the searching families count in. O(stages).
#include "core/families/searchinputs.h"

#include "core/families/orders.h"
#include "core/families/zbvheuristic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

namespace pipewright {

namespace {

/// Rounded down, but 1.15 x 20 is 23 although 1.15 is a little less in binary.
std::int64_t wholeUnits(double value)
{
    return static_cast<std::int64_t>(std::floor(std::min(value * (1 + 1e-12), 9e15)));
}

/// Every device must have room for a microbatch.
void checkBudget(const FamilyParameters& parameters, int chunks, Diagnostics& diagnostics)
{
    if (std::ssize(parameters.memoryBudget) != parameters.devices || parameters.stageSaved.empty()) {
        diagnostics.push_back(
            {Severity::Error, "--memory-limit",
             fmt::format("budgets of {} devices for {}, whose stages keep {}", parameters.memoryBudget.size(),
                         parameters.devices, parameters.stageSaved.empty() ? "unknown bytes" : "known bytes"),
             "give one per device, and the bytes of every stage"});
        return;
    }
    const std::vector<int> deviceOfStage = searchPlacement(parameters.devices, chunks);
    const SearchMemory memory(parameters, chunks);
    std::vector<std::int64_t> one(parameters.devices);
    for (std::size_t s = 0; s < deviceOfStage.size(); ++s)
        one[deviceOfStage[s]] += memory.ofStage[s].forward + memory.ofStage[s].growth();
    for (int d = 0; d < parameters.devices; ++d)
        if (one[d] > memory.limit[d])
            diagnostics.push_back({Severity::Error, "--memory-limit",
                                   fmt::format("device {} has {} for activations, and one microbatch keeps {} there", d,
                                               formatSize(std::max<Bytes>(0, memory.limit[d])), formatSize(one[d])),
                                   "allow more memory, or use smaller microbatches or more devices"});
}

} // namespace

std::vector<StageTimes> passTimes(const FamilyParameters& parameters, int chunks)
{
    if (!parameters.stageTimes.empty())
        return parameters.stageTimes;
    return std::vector<StageTimes>(
        static_cast<std::size_t>(parameters.devices) * static_cast<std::size_t>(chunks),
        {parameters.forward / chunks, parameters.inputGrad / chunks, parameters.weightGrad / chunks});
}

std::vector<int> searchPlacement(int devices, int chunks)
{
    return chunks == 1 ? linearPlacement(devices) : vPlacement(devices);
}

ActivationSteps stepsOf(const StageSaved& saved)
{
    return {saved.forward, saved.inputGrad - saved.forward, -saved.inputGrad};
}

std::int64_t mostKept(const std::vector<Block>& lane, const std::vector<ActivationSteps>& ofStage)
{
    std::int64_t now = 0, most = 0;
    for (const Block& block : lane) {
        const ActivationSteps& stage = ofStage[block.stage];
        now += block.op == Op::F   ? stage.forward
               : block.op == Op::I ? stage.inputGrad
               : block.op == Op::W ? stage.weightGrad
                                   : 0;
        most = std::max(most, now);
    }
    return most;
}

SearchMemory::SearchMemory(const FamilyParameters& parameters, int chunks) : m_chunks(chunks)
{
    const std::vector<int> deviceOfStage = searchPlacement(parameters.devices, chunks);
    const bool known = !parameters.stageSaved.empty();
    StageSaved alike{37, 16};
    if (parameters.saved > 0)
        alike = {parameters.saved, parameters.savedForWeightGrad};
    std::vector<std::int64_t> kept(parameters.devices); // of one microbatch, at most
    growth.resize(parameters.devices);
    for (std::size_t s = 0; s < deviceOfStage.size(); ++s) {
        const StageSaved& stage = known ? parameters.stageSaved[s] : alike;
        ofStage.push_back(stepsOf(stage));
        growth[deviceOfStage[s]] = std::max(growth[deviceOfStage[s]], ofStage[s].growth());
        kept[deviceOfStage[s]] += std::max(stage.forward, stage.inputGrad);
    }
    limit = parameters.memoryBudget;
    for (int d = 0; d < parameters.devices && parameters.memoryBudget.empty(); ++d)
        limit.push_back(
            wholeUnits(parameters.memoryLimit.value_or(1.0) * parameters.devices * static_cast<double>(kept[d])));
}

SearchMemory countedInChunks(const FamilyParameters& parameters)
{
    FamilyParameters counted = parameters;
    counted.stageSaved.clear();
    counted.saved = counted.savedForWeightGrad = 1;
    return SearchMemory(counted, 2);
}

bool SearchMemory::fits(const std::vector<std::vector<Block>>& order) const
{
    for (std::size_t d = 0; d < order.size(); ++d)
        if (mostKept(order[d], ofStage) > limit[d])
            return false;
    return true;
}

bool SearchMemory::isEven() const
{
    const auto alike = [](const auto& list) {
        return std::adjacent_find(list.begin(), list.end(), std::not_equal_to<>()) == list.end();
    };
    return alike(ofStage) && alike(limit);
}

int SearchMemory::forwardsThatFit(int device) const
{
    const std::vector<int> deviceOfStage = searchPlacement(static_cast<int>(limit.size()), m_chunks);
    std::int64_t round = 0;
    for (std::size_t s = 0; s < ofStage.size(); ++s)
        round += deviceOfStage[s] == device ? ofStage[s].forward : 0;
    constexpr std::int64_t most = std::numeric_limits<int>::max();
    if (round == 0)
        return most;
    const double room = static_cast<double>(limit[device] - growth[device]) * m_chunks / static_cast<double>(round);
    return static_cast<int>(std::clamp<std::int64_t>(wholeUnits(room), 0, most));
}

Diagnostics checkSearchInputs(const FamilyParameters& parameters, int chunks, double leastMicrobatches)
{
    Diagnostics diagnostics;
    const auto bad = [&](std::string where, std::string what, std::string hint) {
        diagnostics.push_back({Severity::Error, std::move(where), std::move(what), std::move(hint)});
    };
    const std::size_t stages = static_cast<std::size_t>(parameters.devices) * static_cast<std::size_t>(chunks);
    if (!parameters.stageTimes.empty() && parameters.stageTimes.size() != stages)
        bad("times", fmt::format("times of {} stages for a schedule of {}", parameters.stageTimes.size(), stages),
            "give one entry per stage, or none");
    for (const StageTimes& t : parameters.stageTimes)
        if (std::min({t.forward, t.inputGrad, t.weightGrad}) < 0) {
            bad("times", "a negative time", "use 0 or more");
            break;
        }
    if (parameters.saved < 0 || parameters.savedForWeightGrad < 0 || parameters.savedForWeightGrad > parameters.saved)
        bad("--saved-for-weight-grad",
            fmt::format("{} bytes of {} saved", parameters.savedForWeightGrad, parameters.saved),
            "use 0 to all that is saved");
    if (!parameters.stageSaved.empty() && parameters.stageSaved.size() != stages)
        bad("--saved", fmt::format("bytes of {} stages for a schedule of {}", parameters.stageSaved.size(), stages),
            "give one entry per stage, or none");
    for (const StageSaved& stage : parameters.stageSaved)
        if (std::min(stage.forward, stage.inputGrad) < 0) {
            bad("--saved", "a negative size", "use 0 or more");
            break;
        }
    if (hasErrors(diagnostics))
        return diagnostics;
    if (!parameters.memoryBudget.empty()) {
        checkBudget(parameters, chunks, diagnostics);
        return diagnostics;
    }
    const double microbatches = parameters.memoryLimit.value_or(1.0) * parameters.devices;
    if (microbatches * (1 + 1e-12) < leastMicrobatches)
        bad("--memory-limit",
            fmt::format("{}x holds {:.2f} microbatches on a device", parameters.memoryLimit.value_or(1.0),
                        microbatches),
            fmt::format("use at least {:.4f}x", std::ceil(leastMicrobatches / parameters.devices * 1e4) / 1e4));
    return diagnostics;
}

Error noScheduleFits(const FamilyParameters& parameters, std::string_view hint)
{
    const std::string limit = parameters.memoryBudget.empty() ? fmt::format("{}x", parameters.memoryLimit.value_or(1.0))
                                                              : "what the devices' memory leaves for activations";
    return Error("--memory-limit", "the heuristic finds no schedule within " + limit, std::string(hint));
}

} // namespace pipewright
