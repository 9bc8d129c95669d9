// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/designwithin.h"

#include "core/base/diagnostic.h"
#include "core/base/units.h"
#include "core/design/familywork.h"
#include "core/design/groupstages.h"
#include "core/design/optionrules.h"
#include "core/families/searchinputs.h"
#include "core/predict/predict.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int mostTries = 32; ///< a few are usual: the bytes beside the activations hardly change

Error noneFits(const DesignRequest& request, Bytes limit, const std::string& why, const std::string& hint)
{
    return Error(
        "--memory-limit",
        fmt::format("no schedule of {} keeps every device within {}: {}", request.family, exactSize(limit), why), hint);
}

} // namespace

Design makeDesignWithin(DesignRequest request, Bytes limit)
{
    const Family* family = findFamily(request.family);
    if (family != nullptr && family->search == FamilySearch::None)
        throw doesNothing("--memory-limit", *family);
    const int devices =
        (request.costsFrom && request.devices < 1 ? request.costsFrom->schedule.devices() : request.devices)
        / std::max(1, request.replicas);
    request.memoryLimit.reset();
    request.memoryBudget.assign(std::max(0, devices), limit);
    for (int tries = 0; tries < mostTries; ++tries) {
        Design design;
        try {
            design = makeDesign(request);
        } catch (const Error& error) {
            const Diagnostic& first = error.diagnostics().front();
            if (first.where != "--memory-limit")
                throw;
            throw noneFits(request, limit, first.what, first.hint);
        }
        if (hasGroups(design))
            throw Error("--memory-limit", "a limit in bytes is of single devices, and here groups hold the stages",
                        "give a factor, such as 1x");
        const Program program = predictOutline(design).program;
        const std::vector<Bytes> given = request.memoryBudget;
        std::vector<ActivationSteps> steps;
        for (const StageSaved& saved : memoryOfStages(design.costs))
            steps.push_back(stepsOf(saved));
        for (std::size_t d = 0; d < program.devices.size(); ++d) {
            const Program::Device& device = program.devices[d];
            if (device.peakBytes <= limit)
                continue;
            const Bytes left = limit - device.persistentBytes;
            if (left <= 0)
                throw noneFits(request, limit,
                               fmt::format("device {} holds {} of weights, gradients and optimizer state all the time",
                                           d, formatSize(device.persistentBytes)),
                               "allow more memory, or use more devices or a smaller model");
            // Copies of the pipeline stand one behind the other and share an order.
            const std::size_t ofCopy = d % given.size();
            Bytes& budget = request.memoryBudget[ofCopy];
            const Bytes kept = mostKept(design.schedule.order[d], steps);
            budget = std::min({budget, left, std::min(given[ofCopy], kept) - (device.peakBytes - limit)});
        }
        if (request.memoryBudget == given)
            return design;
    }
    throw noneFits(request, limit, fmt::format("{} of its schedules were tried", mostTries),
                   "allow a little more memory, or make it with a factor, such as 1x, and use `search`");
}

} // namespace pipewright
