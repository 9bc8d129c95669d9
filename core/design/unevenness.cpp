// SPDX-License-Identifier: GPL-3.0-or-later
// Splits the variance of the stages' paces into that within devices and that between them.
#include "core/design/unevenness.h"

#include "core/design/formularefresh.h"
#include "core/design/stagecosts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

namespace pipewright {

namespace {

/// Per stage, the time of a microbatch for each unit of its work; without a model each stage has one unit.
std::vector<double> pacesOf(const Design& design)
{
    std::vector<double> paces;
    for (const StageCosts& stage : design.costs.stages)
        paces.push_back(static_cast<double>(stage.forward + stage.backward));
    if (!design.workload || design.layersPerStage.empty())
        return paces;
    const auto stages = layersOfStages(*design.workload, design.layersPerStage);
    for (std::size_t s = 0; s < paces.size() && s < stages.size(); ++s) {
        double work = 0;
        for (const Layer& layer : stages[s])
            work += layer.forwardWork() + layer.backwardWork();
        if (work > 0)
            paces[s] /= work;
    }
    return paces;
}

/// Whether all layers of a kind have equal work.
bool layersAreAlike(const Design& design)
{
    if (!design.workload)
        return false;
    std::map<LayerKind, double> work;
    return std::all_of(design.workload->layers.begin(), design.workload->layers.end(), [&](const Layer& layer) {
        return work.try_emplace(layer.kind, layer.work()).first->second == layer.work();
    });
}

double meanOf(const std::vector<double>& values)
{
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double squaresAround(const std::vector<double>& values, double centre)
{
    double sum = 0;
    for (const double value : values)
        sum += (value - centre) * (value - centre);
    return sum;
}

} // namespace

UnevennessFound unevennessOf(const Design& design)
{
    if (isFormula(design))
        return {Unevenness::OfDevices, true, "a formula gives the times"};
    const std::vector<double> paces = pacesOf(design);
    const double mean = meanOf(paces), all = squaresAround(paces, mean);
    constexpr double even = 0.01; // relative to the mean pace
    if (mean <= 0 || std::sqrt(all / static_cast<double>(paces.size())) <= even * mean)
        return {Unevenness::OfDevices, true, "the stages are even"};
    if (design.workload && design.workload->shape.architecture == Architecture::Table)
        return {Unevenness::OfDevices, true, "the times of the layers are known from their table"};
    std::map<int, std::vector<double>> ofDevice;
    for (std::size_t s = 0; s < paces.size() && s < design.schedule.deviceOfStage.size(); ++s)
        ofDevice[design.schedule.deviceOfStage[s]].push_back(paces[s]);
    double within = 0;
    for (const auto& [device, own] : ofDevice)
        within += squaresAround(own, meanOf(own));
    // Stages of several layers' paces spread within devices nearly as much as between them.
    constexpr double alike = 0.1, unlike = 0.4;
    const bool several = ofDevice.size() > 1 && ofDevice.size() < paces.size();
    if (several && within <= alike * all)
        return {Unevenness::OfDevices, true, "each device's stages are alike"};
    if (several && within >= unlike * all)
        return {Unevenness::OfLayers, true, "the stages of one device differ as those of different devices do"};
    return {Unevenness::OfDevices, false,
            layersAreAlike(design) ? "by the model, layers of a kind are alike" : "nothing tells"};
}

} // namespace pipewright
