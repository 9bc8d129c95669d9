// SPDX-License-Identifier: GPL-3.0-or-later
// Qt needs a private runtime folder and warns where there is none (containers, services, plain ssh). This creates Qt's
// fallback folder beforehand.
#pragma once

namespace pipewright {

/// Sets XDG_RUNTIME_DIR when it is not set. Call before the QGuiApplication is made.
void ensureRuntimeFolder();

} // namespace pipewright
