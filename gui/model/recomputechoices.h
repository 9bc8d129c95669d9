// SPDX-License-Identifier: GPL-3.0-or-later
// The ways to recompute activations, as the designer offers them.
#pragma once

#include "core/base/recompute.h"

#include <QComboBox>

namespace pipewright {

/// Adds them all; each item's data is the name that files and options use.
void addRecomputes(QComboBox& combo);
/// The chosen one; None for an item of another kind.
Recompute chosenRecompute(const QComboBox& combo);

} // namespace pipewright
