// SPDX-License-Identifier: GPL-3.0-or-later
// Designs of training runs that others have published.
#pragma once

#include "core/design/newdesign.h"
#include "core/model/transformer.h"
#include "core/presets/presets.h"

#include <string>

namespace pipewright {

/// 1F1B, or another family of as many devices, of a model whose first layers alone are trained. Without `rated` the
/// devices' efficiency counts, whatever was measured of them.
inline Design published(const ModelShape& shape, const std::string& family, int devices, int microbatches,
                        const std::string& cluster = "h200-nodes", bool rated = true)
{
    NewDesign choice;
    choice.workload = makeWorkload(shape, Optimizer::AdamW, "published");
    choice.cluster = PresetLibrary().cluster(cluster, devices, shape.parallel.devicesPerStage());
    for (DeviceSpec& device : choice.cluster.devices)
        device.rates = rated ? device.rates : nullptr;
    choice.family = family;
    choice.devices = devices;
    choice.microbatches = microbatches;
    choice.zero.level = shape.parallel.data * shape.parallel.context > 1 ? 1 : 0;
    return designFromModel(choice);
}

/// The models of the rows on B200, with as many layers as were trained.
inline ModelShape trainedOnB200(const std::string& model, int layers)
{
    ModelShape shape = PresetLibrary().workload(model).shape;
    shape.layers = layers;
    shape.attention = AttentionMemory::Streamed;
    shape.framework = *frameworkNamed("megatron");
    if (model == "llama-3.1-405b")
        shape.keyValueHeads = 16; // as the authors of the rows have it
    if (shape.experts > 0)
        shape.denseLayers = 1;
    return shape;
}

} // namespace pipewright
