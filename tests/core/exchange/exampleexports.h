// SPDX-License-Identifier: GPL-3.0-or-later
// Designs to export, and the text of their exports.
#pragma once

#include "core/exchange/exchange.h"
#include "core/model/transformer.h"
#include "makers/designs.h"

#include <QString>

#include <optional>
#include <string>
#include <vector>

namespace pipewright::test {

inline Design designOf(const Schedule& schedule)
{
    return test::designOf(schedule, unitCosts(schedule.stages()), "zb-h1 \"on\" 4");
}

inline Design exampleDesign(const char* name, int devices, int microbatches, std::optional<int> chunks = {})
{
    FamilyParameters parameters = sized(devices, microbatches);
    parameters.chunks = chunks;
    return designOf(makeSchedule(name, parameters));
}

/// With a model whose layers are cut into `layersPerStage`, embedding and head included.
inline Design withModel(Design design, std::vector<int> layersPerStage, int transformerLayers)
{
    ModelShape shape;
    shape.layers = transformerLayers;
    shape.tiedHead = false;
    shape.microbatchSize = 2;
    Workload workload;
    workload.shape = shape;
    workload.layers = layersOf(shape);
    design.workload = workload;
    design.layersPerStage = std::move(layersPerStage);
    return design;
}

inline QString textOf(const Design& design, const char* format)
{
    return QString::fromStdString(exportFormat(format).write(design, {"demo.csv"}).text);
}

inline bool warns(const Design& design, const char* format, const char* about)
{
    for (const Diagnostic& d : exportFormat(format).write(design, {}).diagnostics)
        if (d.severity == Severity::Warning && d.what.find(about) != std::string::npos)
            return true;
    return false;
}

} // namespace pipewright::test
