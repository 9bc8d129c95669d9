// SPDX-License-Identifier: GPL-3.0-or-later
// Qt wants a private folder per login session and complains where nobody made one (containers, services,
// plain ssh). This makes the one that Qt would fall back to, before Qt asks.
#pragma once

namespace pipewright {

/// Sets XDG_RUNTIME_DIR when it is not set. Call before the QGuiApplication is made.
void ensureRuntimeFolder();

} // namespace pipewright
