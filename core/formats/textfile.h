// SPDX-License-Identifier: GPL-3.0-or-later
// Whole files as text. Writing is writeFileAtomically() in designfile.h: a reader sees the old content or the new
// and a crash leaves nothing half-written, see core/base/outputfile.h.
#pragma once

#include <string>

namespace pipewright {

/// Throws Error (where = path) when it cannot be read.
std::string readTextFile(const std::string& path);

} // namespace pipewright
