// SPDX-License-Identifier: GPL-3.0-or-later
// Vector pictures as PNG and on paper; PNG also where there is no screen: fonts come from Qt's offscreen platform when
// no application exists yet. Twice the nominal size, so that hairlines and letters stay crisp.
#pragma once

#include <string>

class QImage;
class QPagedPaintDevice;

namespace pipewright {

/// Atomic. Throws Error when the file cannot be written, see core/base/outputfile.h.
void writePng(const QImage& image, const std::string& path, bool overwrite);
/// The same; throws Error also when the SVG cannot be read or its size is beyond 16384 pixels a side.
void svgToPng(const std::string& svg, const std::string& path, bool overwrite = true);
/// One page of the picture's own size, as vectors. Needs an application. Throws as svgToPng() does.
void svgToPdf(const std::string& svg, const std::string& path);
/// Onto a page, as large as its margins allow, upright and centred. Throws Error when the SVG cannot be read or
/// the device cannot be painted on.
void paintSvg(const std::string& svg, QPagedPaintDevice& page);

} // namespace pipewright
