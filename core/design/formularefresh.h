// SPDX-License-Identifier: GPL-3.0-or-later
// Costs that a formula gave are made anew after a change of the design.
#pragma once

#include "core/design/design.h"

namespace pipewright {

/// Whether all times are a formula's, so that they may be made anew.
bool isFormula(const Design& design);

/// `base`: the design before the change, whose host gaps and overlap factor stay. Throws Error.
void refreshFormulaCosts(const Design& base, Design& design);

} // namespace pipewright
