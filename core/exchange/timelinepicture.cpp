// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/timelinepicture.h"

#include "core/exchange/picturelanes.h"
#include "core/exchange/picturememory.h"
#include "core/exchange/picturescene.h"
#include "core/exchange/picturewords.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

std::string lengthOf(double pixels, bool centimetres)
{
    std::string text;
    appendNumber(text, centimetres ? pixels / pixelsPerInch * 2.54 : pixels);
    return centimetres ? text + "cm" : text;
}

// The area along the time axis, for each column.
std::vector<Rectangle> timesOf(const PictureScene& scene)
{
    std::vector<Rectangle> areas;
    const double top = scene.bands.front().lanesTop;
    for (const PictureBand& band : scene.bands)
        for (std::size_t column = 0; column < band.views.size(); ++column) {
            const TimeScale& scale = band.views[column].scale;
            if (column >= areas.size())
                areas.push_back({scale.left, top, scale.width, 0});
            areas[column].height = band.bottom - top;
        }
    return areas;
}

} // namespace

Picture drawPicture(const std::vector<PicturePanel>& panels, const PictureOptions& options)
{
    const PictureScene scene = makePictureScene(panels, options);
    Picture picture;
    picture.zoom = options.width / scene.width;
    picture.width = options.width;
    picture.height = scene.height * picture.zoom;
    picture.times = timesOf(scene);
    picture.end = scene.bands.front().views.front().scale.end;
    picture.colours = options.colours;

    const std::string& name = panels.front().design->name;
    SvgWriter svg({0, 0, scene.width, scene.height}, lengthOf(picture.width, options.centimetres),
                  lengthOf(picture.height, options.centimetres), name.empty() ? "Pipeline schedule" : name);
    svg.fill({0, 0, scene.width, scene.height}, scene.theme.background);
    drawHeader(scene, svg);
    drawAxes(scene, svg);
    for (const PictureBand& band : scene.bands) {
        drawHeadings(scene, svg, band);
        drawNames(scene, svg, band);
        for (const PictureView& view : band.views) {
            drawLanes(scene, svg, band, view);
            if (band.memoryHeight > 0)
                drawMemory(scene, svg, band, view);
        }
    }
    drawFooter(scene, svg);
    picture.svg = std::move(svg).finish();
    return picture;
}

std::string timelineSvg(const PicturePanel& panel, const PictureOptions& options)
{
    return drawPicture({panel}, options).svg;
}

std::string_view nameOf(PictureColours colours)
{
    switch (colours) {
    case PictureColours::Light: return "light";
    case PictureColours::Dark: return "dark";
    case PictureColours::Paper: return "paper";
    case PictureColours::Grey: return "grey";
    }
    return {};
}

std::string_view nameOf(MeasuredPlace place)
{
    switch (place) {
    case MeasuredPlace::Over: return "over";
    case MeasuredPlace::Under: return "under";
    case MeasuredPlace::Beside: return "beside";
    case MeasuredPlace::Alone: return "alone";
    }
    return {};
}

} // namespace pipewright
