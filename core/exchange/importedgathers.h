// SPDX-License-Identifier: GPL-3.0-or-later
// What a PyTorch schedule says of parameters and gradients that copies share out (UNSHARD, RESHARD, REDUCE_GRAD), as a
// design states it: ZeRO 3 with the rule that comes nearest, and the gathers that stand elsewhere.
#pragma once

#include "core/exchange/importedorder.h"
#include "core/exchange/pytorchcomms.h"

#include <string>

namespace pipewright {

/// Every PyTorch schedule gathers each stage once, which says nothing of copies; where a rank gathers one again, the
/// design gets level 3, and gathers of gatherTime each. The notes say what became of the actions. `rows`: of the file,
/// checked. O(actions x stages of a rank).
void stateGathers(Imported& imported, const PytorchRows& rows, const std::string& source);

/// What a gather takes in an imported design, as its passes take 1 ms, until a model says.
inline constexpr Nanoseconds gatherTime = 100'000;

} // namespace pipewright
