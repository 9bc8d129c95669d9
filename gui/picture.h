// SPDX-License-Identifier: GPL-3.0-or-later
// Vector pictures as PNG and on paper; PNG also where there is no screen: fonts come from Qt's offscreen platform when no
// application exists yet. Twice the nominal size, so that hairlines and letters stay crisp.
#pragma once

#include <string>

class QPagedPaintDevice;

namespace pipewright {

/// Writes atomically and replaces an existing file. Throws Error when the SVG cannot be read, its size is
/// beyond 16384 pixels a side, or the file cannot be written.
void svgToPng(const std::string& svg, const std::string& path);
/// One page of the picture's own size, as vectors. Needs an application. Throws as svgToPng() does.
void svgToPdf(const std::string& svg, const std::string& path);
/// Onto a page, as large as its margins allow, upright and centred. Throws Error when the SVG cannot be read or
/// the device cannot be painted on.
void paintSvg(const std::string& svg, QPagedPaintDevice& page);

} // namespace pipewright
