// SPDX-License-Identifier: GPL-3.0-or-later
// Whole files as text. Who reads while a file is written sees the old content or the new, and a crash leaves nothing
// half-written (outputfile.h).
#pragma once

#include <string>
#include <string_view>

namespace pipewright {

/// Throws Error (where = path) when it cannot be read.
std::string readTextFile(const std::string& path);

/// Throws Error when the file exists and `overwrite` is false, or cannot be written; nothing half-written is left.
void writeFileAtomically(const std::string& path, std::string_view content, bool overwrite);

} // namespace pipewright
