// SPDX-License-Identifier: GPL-3.0-or-later
// Vector pictures as PNG, also where there is no screen: fonts come from Qt's offscreen platform when no
// application exists yet. Twice the nominal size, so that hairlines and letters stay crisp.
#pragma once

#include <string>

namespace pipewright {

/// Writes atomically and replaces an existing file. Throws Error when the SVG cannot be read, its size is
/// beyond 16384 pixels a side, or the file cannot be written.
void svgToPng(const std::string& svg, const std::string& path);

} // namespace pipewright
