// SPDX-License-Identifier: GPL-3.0-or-later
// Configurations for the two training programs that load a PyTorch schedule CSV: torchtitan (a Python function that
// changes one of its configurations) and NVIDIA NeMo Automodel (a YAML fragment). They name the CSV (pytorch-csv; both
// read compute_only), the number of ranks and microbatches, and which modules each stage holds.
#pragma once

#include "core/exchange/exportedtext.h"

namespace pipewright {

/// The release whose field and module names the export was checked against (tests/torch/check_exports.py repeats the
/// check).
inline constexpr std::string_view torchtitanVersion = "0.3.0";

/// `csv` is the path that the file names. The torchtitan file knows the field names of that release and of the later
/// source, and raises an error where a version has neither. Warns when the framework would put the stages on other
/// ranks than the design does. Throws Error when the schedule cannot run.
ExportedText torchtitanConfig(const Design& design, const std::string& csv);
ExportedText automodelConfig(const Design& design, const std::string& csv);

} // namespace pipewright
