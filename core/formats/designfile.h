// SPDX-License-Identifier: GPL-3.0-or-later
// Designs as JSON files. Reading is strict: an unknown key, a wrong type or an impossible value is a
// diagnostic that names file and line. Writing is atomic (a temporary file in the same folder, renamed).
#pragma once

#include "core/program/design.h"

#include <string>
#include <string_view>

namespace pipewright {

std::string designToJson(const Design& design);
/// `where` names the text in diagnostics ("design.json" gives "design.json:12"). Throws Error. Checks form
/// and ranges only; whether the schedule can run is validate()'s business.
Design designFromJson(std::string_view text, const std::string& where);

Design readDesign(const std::string& path);
/// Throws Error when the file exists and `overwrite` is false, or cannot be written.
void writeDesign(const Design& design, const std::string& path, bool overwrite);
/// The same for any text; nothing half-written is ever left under `path`.
void writeFileAtomically(const std::string& path, std::string_view content, bool overwrite);

} // namespace pipewright
