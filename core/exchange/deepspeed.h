// SPDX-License-Identifier: GPL-3.0-or-later
// A design as a configuration of DeepSpeed (JSON): batch, ZeRO stage, precision, and for its PipelineModule the number
// of stages and the layers that are recomputed together. Keys are those of deepspeed/runtime/config.py.
#pragma once

#include "core/exchange/exportedtext.h"

namespace pipewright {

/// DeepSpeed runs 1F1B alone, a stage on each device, and shares out at most the optimizer's state beside pipelines:
/// warns where the design does otherwise. Throws Error without a model, and for a design with several replicas.
ExportedText deepspeedConfig(const Design& design);

} // namespace pipewright
