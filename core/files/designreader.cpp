// SPDX-License-Identifier: GPL-3.0-or-later
// JSON -> Design, strictly. One section of the file, one function.
#include "core/files/buildingblockreader.h"
#include "core/files/costsreader.h"
#include "core/files/designfile.h"
#include "core/files/locateddesign.h"
#include "core/files/plansreader.h"
#include "core/files/schedulereader.h"
#include "core/json/jsontext.h"
#include "core/model/transformer.h"
#include "core/presets/clusterjson.h"
#include "core/presets/modeljson.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pipewright {

namespace {

using Json = nlohmann::ordered_json;

std::optional<Workload> readModel(Reading& reading, const Json& value)
{
    const std::size_t faultsBefore = reading.diagnostics.size();
    ObjectReader reader = reading.object(value, "/model");
    const ModelShape shape = readShape(reader);
    Optimizer optimizer = Optimizer::AdamW;
    readOptimizer(reader, "optimizer", optimizer);
    StateBytesPerParameter state = stateBytes(shape.dataType, optimizer, shape.framework);
    if (const Json* bytes = reader.object("state_bytes_per_parameter")) {
        ObjectReader stateReader = reading.object(*bytes, "/model/state_bytes_per_parameter");
        stateReader.read("parameter", state.parameter, 0, 64, Presence::Required);
        stateReader.read("gradient", state.gradient, 0, 64, Presence::Required);
        stateReader.read("optimizer", state.optimizer, 0, 64, Presence::Required);
        stateReader.finish();
    }
    std::string source = "design file";
    reader.read("source", source);
    reader.finish();
    if (reading.diagnostics.size() != faultsBefore)
        return std::nullopt;
    for (const Diagnostic& wrong : checkShape(shape)) {
        // the place "model.hidden" is the pointer /model/hidden
        std::string pointer = "/" + wrong.where;
        std::replace(pointer.begin(), pointer.end(), '.', '/');
        reading.fault(pointer, fmt::format("{}: {}", wrong.where, wrong.what), wrong.hint);
    }
    if (reading.diagnostics.size() != faultsBefore)
        return std::nullopt;
    Workload workload = makeWorkload(shape, optimizer, std::move(source));
    workload.state = state;
    return workload;
}

Dataflow readDataflow(Reading& reading, const Json& value, int stages)
{
    Dataflow dataflow;
    ObjectReader reader = reading.object(value, "/dataflow");
    const int last = std::max(stages - 1, 0);
    if (const Json* skips = reader.array("skips")) {
        for (std::size_t i = 0; i < skips->size(); ++i) {
            ObjectReader entry = reading.object((*skips)[i], fmt::format("/dataflow/skips/{}", i));
            SkipConnection skip;
            entry.read("from_stage", skip.fromStage, 0, last, Presence::Required);
            entry.read("to_stage", skip.toStage, 0, last, Presence::Required);
            entry.readSize("bytes", skip.bytes, Presence::Required);
            entry.finish();
            dataflow.skips.push_back(skip);
        }
    }
    if (const Json* shared = reader.array("shared")) {
        for (std::size_t i = 0; i < shared->size(); ++i) {
            ObjectReader entry = reading.object((*shared)[i], fmt::format("/dataflow/shared/{}", i));
            SharedParameter parameter;
            entry.read("root_stage", parameter.rootStage, 0, last, Presence::Required);
            entry.read("other_stage", parameter.otherStage, 0, last, Presence::Required);
            entry.readSize("bytes", parameter.bytes, Presence::Required);
            entry.readSize("values", parameter.values);
            entry.read("copied", parameter.copied);
            entry.finish();
            dataflow.shared.push_back(parameter);
        }
    }
    reader.finish();
    return dataflow;
}

void checkPartition(Reading& reading, const Design& design, bool modelGiven)
{
    const std::string pointer = "/layers_per_stage";
    if (!modelGiven) {
        reading.fault(pointer, "the model's layers are cut into stages, but no model is given",
                      "add \"model\" or remove this");
        return;
    }
    if (static_cast<int>(design.layersPerStage.size()) != design.schedule.stages())
        reading.fault(
            pointer,
            fmt::format("{} stages here, but {} are placed", design.layersPerStage.size(), design.schedule.stages()),
            "give one number per stage of \"placement\"");
    if (!design.workload)
        return; // its own faults are reported already
    const std::int64_t sum =
        std::accumulate(design.layersPerStage.begin(), design.layersPerStage.end(), std::int64_t(0));
    const auto layers = static_cast<std::int64_t>(design.workload->layers.size());
    if (sum != layers)
        reading.fault(pointer, fmt::format("the stages hold {} layers, but the model has {}", sum, layers),
                      "embedding and head count as one layer each");
}

// Before anything else: a file of another version, or of another kind, gets one clear answer.
void checkVersion(const LocatedJson& document)
{
    const auto fail = [&document](std::string_view pointer, std::string what, std::string hint) {
        throw Error(document.placeOf(pointer), std::move(what), std::move(hint));
    };
    if (!document.value.is_object() || !document.value.contains("pipewright"))
        fail("", "this is not a Pipewright design",
             fmt::format("a design begins with {{ \"pipewright\": {} }}", designVersion));
    const Json& found = document.value["pipewright"];
    if (found.is_number_integer() && found > designVersion)
        fail("/pipewright",
             fmt::format("a newer Pipewright wrote this file: design version {}", jsonText(found).substr(0, 20)),
             fmt::format("this program reads version {}: update it, or save an older version where the file was made",
                         designVersion));
    if (!found.is_number_integer() || found < 1)
        fail("/pipewright", fmt::format("design version {} is unknown", jsonText(found).substr(0, 20)),
             fmt::format("this program reads versions 1 to {}", designVersion));
}

} // namespace

LocatedDesign locatedDesignFromJson(std::string_view text, const std::string& where)
{
    const LocatedJson document = parseLocatedJson(text, where);
    checkVersion(document);
    Reading reading{document, {}};
    LocatedDesign result;
    Design& design = result.design;

    ObjectReader reader = reading.object(document.value, "");
    int version = designVersion;
    reader.read("pipewright", version, 1, designVersion);
    reader.read("name", design.name);
    const Json* model = reader.object("model");
    if (model)
        design.workload = readModel(reading, *model);
    const Json* partition = reader.array("layers_per_stage");
    if (partition)
        design.layersPerStage = readIntegers(reading, *partition, "/layers_per_stage", 1, 1'000'000);
    if (const Json* cluster = reader.object("cluster"))
        design.cluster = readCluster(document, *cluster, "/cluster", reading.diagnostics);
    const Json* block = reader.object("building_block");
    if (block) {
        BlockReading found = readBuildingBlock(document, *block, "/building_block", reading.diagnostics);
        design.buildingBlock = std::move(found.repeated);
        design.schedule = std::move(found.schedule);
    }
    if (const Json* schedule = reader.object("schedule", block ? Presence::Optional : Presence::Required))
        readSchedule(reading, *schedule, design.schedule, {.unrolled = block != nullptr, .version = version});
    if (const Json* costs = reader.object("costs", Presence::Required))
        design.costs = readCosts(document, *costs, design.schedule.stages(), reading.diagnostics);
    if (const Json* dataflow = reader.object("dataflow"))
        design.dataflow = readDataflow(reading, *dataflow, design.schedule.stages());
    if (partition && !partition->empty())
        checkPartition(reading, design, model != nullptr);
    if (const Json* plans = reader.array("sharding"))
        readPlans(document, *plans, "/sharding", design, reading.diagnostics);
    reader.finish();
    if (!reading.diagnostics.empty())
        throw Error(std::move(reading.diagnostics));

    result.source = where;
    const auto given = [&document](const char* key) {
        return document.value.contains("schedule") && document.value["schedule"].contains(key);
    };
    for (int device = 0; device < design.schedule.devices(); ++device)
        result.lineOfDevice.push_back(
            document.lineOf(given("order") ? fmt::format("/schedule/order/{}", device) : "/building_block"));
    result.lineOfSchedule = document.lineOf(document.value.contains("schedule") ? "/schedule" : "/building_block");
    result.lineOfPlacement = document.lineOf(given("placement") ? "/schedule/placement" : "/building_block/placement");
    if (document.value.contains("schedule"))
        for (const auto& [key, value] : document.value["schedule"].items())
            result.lineOfKey[key] = document.lineOf("/schedule/" + key);
    result.lineOfCosts = document.lineOf("/costs");
    result.lineOfModel = document.lineOf("/model");
    return result;
}

Design designFromJson(std::string_view text, const std::string& where)
{
    return locatedDesignFromJson(text, where).design;
}

} // namespace pipewright
