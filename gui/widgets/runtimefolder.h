// SPDX-License-Identifier: GPL-3.0-or-later
// Qt needs a private runtime folder and warns where there is none (containers, services, plain ssh). This creates Qt's
// fallback folder beforehand, and other folders that only one user can read.
#pragma once

#include <QString>

namespace pipewright {

/// Makes a folder that only its owner can look into, with the folders above it. False when that is impossible, or when
/// something of another user, or a link, has its name.
bool makePrivateFolder(const QString& folder);

/// Sets XDG_RUNTIME_DIR when it is not set. Call before the QGuiApplication is made.
void ensureRuntimeFolder();

} // namespace pipewright
