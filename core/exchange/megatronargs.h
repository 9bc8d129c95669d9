// SPDX-License-Identifier: GPL-3.0-or-later
// A design as arguments of Megatron-LM's training script, one per line: degrees of parallelism, the layout of layers on
// stages (megatronlayout.h), batch, recomputation, the distributed optimizer, and the model's dimensions. Names are
// those of megatron/training/arguments.py.
#pragma once

#include "core/exchange/exportedtext.h"

namespace pipewright {

/// Warns of what Megatron does otherwise, and of properties of the model for which no argument is written. Throws Error
/// for a model that is no decoder, and as megatronLayout().
ExportedText megatronArguments(const Design& design);

} // namespace pipewright
