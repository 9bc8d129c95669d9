// SPDX-License-Identifier: GPL-3.0-or-later
// Whole files as text. A concurrent reader sees the old or the new content, and a crash leaves no partial file
// (outputfile.h).
#pragma once

#include <string>
#include <string_view>

namespace pipewright {

/// Throws Error (where = path) when it cannot be read.
std::string readTextFile(const std::string& path);

/// Throws Error when the file exists and `overwrite` is false, or cannot be written; nothing half-written is left.
void writeFileAtomically(const std::string& path, std::string_view content, bool overwrite);

} // namespace pipewright
