// SPDX-License-Identifier: GPL-3.0-or-later
// The bytes of what a framework keeps (frameworkmemory.h): in the tensors of a layer, in the workspace of passes, and
// on a device all the time. All of one member, where devices form groups. O(tensors).
#pragma once

#include "core/model/workload.h"

#include <span>

namespace pipewright {

/// Replaces what the layer of a model without a framework keeps of a microbatch.
void asKeptByFramework(const ModelShape& shape, Layer& layer);

/// What the passes of a layer at an end of the model work in, besides what other layers do.
struct EndWorkspace {
    Bytes forward = 0, inputGrad = 0;
    Bytes weightGrad = 0; ///< of W alone …
    Bytes backward = 0;   ///< … and in a full B, which released some of the layers' tensors on the way there
    bool operator==(const EndWorkspace&) const = default;
};
/// `keptByOthers`: what a full B of the stage released before it comes to the weights of the first layer.
EndWorkspace endWorkspace(const ModelShape& shape, const Layer& layer, Bytes keptByOthers);

/// What a stage's device holds all the time besides parameters, gradients, the optimizer's state and narrow weights.
/// Stages of one device share it: the device holds the largest of theirs.
Bytes heldByFramework(const ModelShape& shape, std::span<const Layer> layersOfStage);
/// Copies of a stage's weights in the type that products read, held all the time beside its parameters. Where these are
/// of that type themselves (ModelShape::narrowParameters) it is the other copy, of parameters that are gathered as
/// blocks need them (`gathered`) none: it is made again for each layer.
Bytes narrowWeightsOf(const ModelShape& shape, std::span<const Layer> layersOfStage, bool gathered = false);

} // namespace pipewright
