// SPDX-License-Identifier: GPL-3.0-or-later
// A design of a family that searches under a limit in bytes, as people know it of their devices: all that a device is
// predicted to hold, from weights to workspace, and not the activations alone that families count.
#pragma once

#include "core/design/designbuilder.h"

namespace pipewright {

/// The design that `request` asks for, with a predicted peak of at most `limit` bytes on every device. The family gets
/// what is left of the limit beside all else at the peak, device by device, until the prediction keeps within it.
/// Throws Error as makeDesign(), for a family that does not search, for groups, and where no schedule of the family
/// fits. A few times the cost of makeDesign() and predictOutline().
Design makeDesignWithin(DesignRequest request, Bytes limit);

} // namespace pipewright
