// SPDX-License-Identifier: GPL-3.0-or-later
// Configuration fragments for the two training programs that load a PyTorch schedule CSV: torchtitan (TOML)
// and NVIDIA NeMo Automodel (YAML). They name the CSV (pytorch-csv; both read compute_only), the number of
// ranks and microbatches, and which modules each stage holds.
#pragma once

#include "core/exchange/exportedtext.h"

namespace pipewright {

/// `csv` is the path that the fragment names. Warns when the framework would put the stages on other ranks
/// than the design does. Throws Error when the schedule cannot run.
ExportedText torchtitanConfig(const Design& design, const std::string& csv);
ExportedText automodelConfig(const Design& design, const std::string& csv);

} // namespace pipewright
