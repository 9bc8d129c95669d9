// SPDX-License-Identifier: GPL-3.0-or-later
// Vector pictures as PNG, as PDF and on paper. Works without a screen: when no application exists yet, Qt's offscreen
// platform provides the fonts.
#pragma once

#include "core/exchange/timelinepicture.h"

#include <QSizeF>

#include <string>

class QImage;
class QPagedPaintDevice;

namespace pipewright {

/// A resolution at which hairlines and letters stay crisp on a screen.
inline constexpr double screenDotsPerInch = 2 * pixelsPerInch;

/// Atomic. Throws Error when the file cannot be written, see core/base/outputfile.h.
void writePng(const QImage& image, const std::string& path, bool overwrite);
/// `size`: in pixels of 1/96 inch; a size stated in the SVG is ignored. Throws Error when the file cannot be written,
/// the SVG cannot be read, or the image would have more than 16384 dots a side.
void svgToPng(const std::string& svg, QSizeF size, const std::string& path, bool overwrite,
              double dotsPerInch = screenDotsPerInch);
/// One page of that size, as vectors. Throws as svgToPng() does.
void svgToPdf(const std::string& svg, QSizeF size, const std::string& path, bool overwrite);
/// Paints onto a page, as large as its margins allow, upright and centred. Throws Error when the SVG cannot be read or
/// the device cannot be painted on.
void paintSvg(const std::string& svg, QSizeF size, QPagedPaintDevice& page);

/// Writes the format of the file's extension: .svg, .pdf, .png, or .html for an animation of `seconds`. Throws Error,
/// also for any other extension.
void writePicture(const Picture& picture, const std::string& path, bool overwrite,
                  double dotsPerInch = screenDotsPerInch, double seconds = 10);

} // namespace pipewright
