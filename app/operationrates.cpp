// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/operationrates.h"

#include "app/table.h"
#include "app/terminal.h"

#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"
#include "core/base/inputfile.h"
#include "core/base/textfile.h"
#include "core/design/ratedwork.h"
#include "executor/machine/operationmeasure.h"
#include "executor/torch/torchrates.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <map>

namespace pipewright::app {

namespace {

std::string today()
{
    return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
}

/// Throws before anything is measured.
void checkFile(const OperationsAsked& asked, const Cluster& cluster)
{
    const std::string file = ratesFileOf(asked.clusterFile);
    if (!asked.force && pathExists(file))
        throw Error(file, "the file of rates exists", "--force replaces it, or name another cluster with -o");
    const DeviceSpec& device = cluster.devices.front();
    if (device.group || !(device.peakFlops > 0) || !(device.memoryBandwidth > 0))
        throw Error("cluster", "its first device has no peak rates that shares could be of",
                    "take a cluster whose devices have peak_flops and memory_bandwidth");
}

std::vector<RatedShape> shapesOf(const Design& design)
{
    std::vector<RatedShape> shapes = ratedShapesOf(design);
    if (shapes.empty())
        throw Error(design.name, "it has no model whose operations are known, so there is nothing to measure",
                    "take a design of a model by its dimensions, or measure a grid: leave the design out");
    return shapes;
}

OperationsMeasured written(const OperationsAsked& asked, OperationsMeasured measured,
                           const std::vector<MeasuredTime>& times, const std::string& title, const std::string& with,
                           Cluster& cluster)
{
    const bool anyProduct = std::any_of(times.begin(), times.end(), [](const MeasuredTime& time) {
        return time.shape.operation == RatedOperation::Product;
    });
    if (!anyProduct)
        throw Error("--operations",
                    measured.leftOut.empty() ? "no product was measured"
                                             : "no product can be measured: " + measured.leftOut.back().second,
                    "take another --backend (torch multiplies fp32 and bf16), or a design of another type");
    const DeviceSpec& device = cluster.devices.front();
    measured.file = ratesFileOf(asked.clusterFile);
    measured.rates =
        ratesOf(times, {title,
                        fmt::format("measured by pipewright devices --measure --operations with {} on {}, "
                                    "for {}",
                                    with, today(), asked.design ? "the shapes of " + asked.design->name : "a grid"),
                        with, today(), device.peakFlops, device.memoryBandwidth});
    measured.rates.name = std::filesystem::path(measured.file).filename().string();
    writeFileAtomically(measured.file, ratesText(measured.rates), asked.force);
    const auto shared = std::make_shared<const OperationRates>(measured.rates);
    for (DeviceSpec& each : cluster.devices)
        each.rates = shared;
    return measured;
}

double secondsSince(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

} // namespace

std::string ratesFileOf(const std::string& clusterFile)
{
    return std::filesystem::path(clusterFile).replace_extension(".rates.json").string();
}

OperationsMeasured measureOperations(const OperationsAsked& asked, Backend& backend, const std::string& title,
                                     Cluster& cluster)
{
    checkFile(asked, cluster);
    const bool onGpus = backend.name() == "cuda";
    OperationMeasureOptions options;
    options.cancel = asked.cancel;
    options.progress = asked.progress;
    const auto begin = std::chrono::steady_clock::now();
    const OperationMeasurement found = measureOperations(
        backend, asked.design ? shapesOf(*asked.design) : ratedGrid(onGpus ? DataType::Bf16 : DataType::Fp32, 4),
        options);
    OperationsMeasured measured;
    measured.seconds = secondsSince(begin);
    for (const OperationMeasurement::LeftOut& left : found.leftOut)
        measured.leftOut.emplace_back(left.shape, left.why);
    return written(asked, std::move(measured), found.times, title,
                   onGpus ? "the CUDA plugin" : "the host's built-in kernels", cluster);
}

OperationsMeasured measureOperationsInTorch(const OperationsAsked& asked, const std::string& python, Cluster& cluster)
{
    checkFile(asked, cluster);
    TorchRatesOptions options;
    options.python = python;
    options.cancel = asked.cancel;
    options.progress = asked.progress;
    const auto begin = std::chrono::steady_clock::now();
    const TorchRates found = measureInTorch(shapesOf(*asked.design), options);
    OperationsMeasured measured;
    measured.seconds = secondsSince(begin);
    for (const TorchRates::LeftOut& left : found.leftOut)
        measured.leftOut.emplace_back(left.shape, left.why);
    return written(asked, std::move(measured), found.times, fmt::format("{}, {}", found.device, found.tool), found.tool,
                   cluster);
}

void print(const OperationsMeasured& measured)
{
    TextTable table({"operation", "layout", "types", "shapes", "slowest", "fastest"});
    for (const RateTable& each : measured.rates.tables) {
        const auto [low, high] =
            std::minmax_element(each.shapes.begin(), each.shapes.end(),
                                [](const MeasuredRate& a, const MeasuredRate& b) { return a.share < b.share; });
        const bool bytes = each.operation == RatedOperation::Memory;
        const auto rate = [&](const MeasuredRate& shape) {
            return fmt::format("{:.2f} {}", each.peak * shape.share / 1e9, bytes ? "GB/s" : "GFLOP/s");
        };
        table.addRow({std::string(nameOf(each.operation)), each.layout, each.types, std::to_string(each.shapes.size()),
                      rate(*low), rate(*high)});
    }
    printText("\n");
    table.print();
    std::map<std::string, std::vector<std::string>> byReason;
    for (const auto& [shape, why] : measured.leftOut)
        byReason[why].push_back(textOf(shape));
    for (const auto& [why, shapes] : byReason)
        printText("not measured, {}: {}{}\n", why, shapes.front(),
                  shapes.size() > 1 ? fmt::format(" and {} more", shapes.size() - 1) : "");
    printText("{}: rates of {} tables in {:.0f} s\n", measured.file, measured.rates.tables.size(), measured.seconds);
}

Json toJson(const OperationsMeasured& measured)
{
    Json object{{"file", measured.file}, {"seconds", measured.seconds}, {"left_out", Json::array()}};
    std::size_t shapes = 0;
    for (const RateTable& table : measured.rates.tables)
        shapes += table.shapes.size();
    object["shapes"] = shapes;
    for (const auto& [shape, why] : measured.leftOut)
        object["left_out"].push_back({{"shape", textOf(shape)}, {"why", why}});
    return object;
}

} // namespace pipewright::app
