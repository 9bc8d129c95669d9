// SPDX-License-Identifier: GPL-3.0-or-later
// The bytes of a device by what they are, as `predict --json` and `plan --json` name them.
#pragma once

#include "app/command.h"

#include "core/predict/stagememory.h"

namespace pipewright::app {

inline Json byKind(const DeviceMemory& memory)
{
    return {{"weights", memory.weights},     {"gradients", memory.gradients}, {"optimizer", memory.optimizer},
            {"framework", memory.framework}, {"gathered", memory.gathered},   {"activations", memory.activations},
            {"buffers", memory.buffers},     {"workspace", memory.workspace}};
}

} // namespace pipewright::app
