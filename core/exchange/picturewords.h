// SPDX-License-Identifier: GPL-3.0-or-later
// The words and numbers of a timeline picture: title or headings, legend, names at the left, axis of time, and the
// numbers, each of which says whether it was predicted or measured where a picture shows both.
#pragma once

#include "core/exchange/picturescene.h"
#include "core/exchange/svgwriter.h"

namespace pipewright {

/// The legend entries that the views need; operations in their usual order.
std::vector<LegendEntry> legendOf(const PictureScene& scene);
double titleWidth(const PictureScene& scene);
bool headingFitsOneLine(const PictureScene& scene, const PictureView& view);
/// "77.6 / 141 GiB": a device's peak and its limit.
std::string memoryText(const PictureScene& scene, const PictureView& view, int device);
int footerRows(const PictureScene& scene);

void drawHeader(const PictureScene& scene, SvgWriter& svg);
void drawHeadings(const PictureScene& scene, SvgWriter& svg, const PictureBand& band);
void drawNames(const PictureScene& scene, SvgWriter& svg, const PictureBand& band);
void drawAxes(const PictureScene& scene, SvgWriter& svg);
void drawFooter(const PictureScene& scene, SvgWriter& svg);

} // namespace pipewright
