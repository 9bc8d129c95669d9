// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/shardrun.h"

#include "app/table.h"
#include "app/terminal.h"
#include "core/base/formattedtext.h"
#include "core/base/rates.h"
#include "core/base/textfile.h"
#include "core/base/units.h"
#include "core/design/redesign.h"
#include "core/files/designfile.h"
#include "executor/host/hostbackend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace pipewright::app {

namespace {

using namespace pipewright::sharding;

constexpr double mostElements = 5e8, longestRun = 600;

void refuseLarge(const GraphFile& file, int devices, const char* option)
{
    double elements = 0;
    for (const Node& node : file.graph.nodes())
        elements += node.elements();
    if (elements * devices > mostElements)
        throw Error(option, fmt::format("the tensors of this model have {:.3g} elements", elements),
                    "run a smaller one here");
}

} // namespace

ShardRun runPlan(const GraphFile& file, const Machine& machine, const ShardingPlan& plan,
                 const std::vector<Alternative>& common, int steps, Backend* backend)
{
    refuseLarge(file, machine.devices(), "--run");
    double predicted = plan.cost;
    for (const Alternative& strategy : common)
        predicted += strategy.cost;
    if (!backend && predicted * steps > longestRun)
        throw Error("--run",
                    fmt::format("{} steps of every strategy would take {}", steps,
                                formatDuration(toNanoseconds(predicted * steps))),
                    "give the devices of the cluster higher rates, or run fewer steps");
    try {
        const Theory theory(file.graph, machine, plan.ratios);
        const LeafValues leaves = randomLeaves(file.graph, 1);
        ShardRun run;
        run.single = runSingle(file.graph, leaves);
        run.shared = runProgram(theory, plan.program, leaves, {.backend = backend});
        run.gradientError = gradientError(run.shared, run.single);
        run.backend = backend ? backend->name() : "host";
        run.strategies = measureWays(file.graph, machine, plan, common, leaves, steps, backend);
        return run;
    } catch (const Error& error) {
        throw Error(file.locate(error.diagnostics()));
    }
}

Json toJson(const ShardRun& run)
{
    Json object{{"backend", run.backend}, {"loss", run.shared.loss}, {"reference_loss", run.single.loss}};
    object["gradient_error"] = run.gradientError;
    object["predicted_ns"] = toNanoseconds(run.strategies.front().predicted);
    const auto steps = [](const MeasuredStrategy& strategy) {
        Json list = Json::array();
        for (const double step : strategy.stepSeconds)
            list.push_back(toNanoseconds(step));
        return list;
    };
    object["step_ns"] = steps(run.strategies.front());
    object["ways"] = Json::array();
    for (const MeasuredStrategy& strategy : run.strategies)
        object["ways"].push_back({{"name", strategy.name},
                                  {"predicted_ns", toNanoseconds(strategy.predicted)},
                                  {"measured_ns", toNanoseconds(strategy.median())},
                                  {"error", strategy.error()},
                                  {"step_ns", steps(strategy)}});
    return object;
}

void print(const ShardRun& run)
{
    printText("\nran       on {}: loss {:.6g} (one device: {:.6g}), gradients off by {:.1e}\n\n", run.backend,
              run.shared.loss, run.single.loss, run.gradientError);
    TextTable table({"measured", "step", "predicted", "error"});
    for (const MeasuredStrategy& strategy : run.strategies)
        table.addRow({strategy.name, formatDuration(toNanoseconds(strategy.median())),
                      formatDuration(toNanoseconds(strategy.predicted)), signedPercent(strategy.error())});
    table.print();
}

void calibrateShares(GraphFile file, Backend& backend, const std::string& path, bool overwrite, bool json)
{
    const int devices = static_cast<int>(file.cluster.devices.size());
    refuseLarge(file, devices, "--calibrate");
    MeasuredGroup times;
    try {
        times = measureDevices(file.graph, backend);
    } catch (const Error& error) {
        throw Error(file.locate(error.diagnostics()));
    }
    file.cluster = calibrated(file.cluster, times);
    writeFileAtomically(path, graphFileToJson(file), overwrite);
    if (json) {
        Json object{
            {"file", path}, {"rates", times.rates}, {"collectives", Json::object()}, {"samples", Json::array()}};
        for (const auto& [kind, spec] : file.cluster.collectives)
            object["collectives"][nameOf(kind)] = {{"latency_ns", spec.latency}, {"bandwidth", spec.bandwidth}};
        for (const CollectiveSample& sample : times.samples)
            object["samples"].push_back({{"collective", nameOf(sample.kind)},
                                         {"bytes", sample.bytes},
                                         {"skew", sample.skew},
                                         {"measured_ns", toNanoseconds(sample.seconds)},
                                         {"fitted_ns", toNanoseconds(fittedSeconds(file.cluster, sample, devices))}});
        printJson(object);
        return;
    }
    for (std::size_t d = 0; d < times.rates.size(); ++d)
        printText("device {}  {:.3g} FLOP/s\n", d, times.rates[d]);
    TextTable table({"collective", "latency", "bandwidth"});
    for (const auto& [kind, spec] : file.cluster.collectives)
        table.addRow({std::string(nameOf(kind)), formatDuration(spec.latency), formatBandwidth(spec.bandwidth)});
    table.print();
}

void calibrateGroups(const GraphFile& file, const Design& design, const std::string& path, bool overwrite, bool json)
{
    Cluster cluster = design.cluster;
    int members = 0;
    for (const DeviceSpec& device : cluster.devices)
        members += device.group ? static_cast<int>(device.group->devices.size()) : 1;
    refuseLarge(file, members, "--calibrate");
    std::vector<std::vector<double>> ofDevices;
    try {
        const auto all = createHostBackend(members);
        const std::vector<double> rates = measureDevices(file.graph, *all, {.elements = {}}).rates;
        auto next = rates.begin();
        for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
            DeviceSpec& device = cluster.devices[d];
            const auto count = device.group ? static_cast<int>(device.group->devices.size()) : 1;
            MeasuredGroup times;
            if (device.group)
                times = measureDevices(file.graph, *createHostBackend(count));
            times.rates.assign(next, next + count); // measured while all others worked
            next += count;
            if (device.group) {
                device = asOneDevice(calibrated(*device.group, times));
            } else {
                device.peakFlops = times.rates.front();
                device.efficiency = 1;
                device.memoryBandwidth = 0;
            }
            ofDevices.push_back(std::move(times.rates));
        }
    } catch (const Error& error) {
        throw Error(file.locate(error.diagnostics()));
    }
    writeDesign(withCluster(design, std::move(cluster)), path, overwrite);
    Json groups = Json::array();
    for (std::size_t d = 0; d < ofDevices.size(); ++d) {
        groups.push_back({{"device", static_cast<int>(d)}, {"rates", ofDevices[d]}});
        std::vector<std::string> rates;
        for (const double rate : ofDevices[d])
            rates.push_back(fmt::format("{:.3g}", rate));
        if (!json)
            printText("device {}  {} FLOP/s, measured\n", d, joined(rates, ", "));
    }
    if (json)
        printJson({{"design", path}, {"groups", std::move(groups)}});
}

} // namespace pipewright::app
