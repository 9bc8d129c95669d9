// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/picturescene.h"

#include "core/base/diagnostic.h"
#include "core/base/utf8.h"
#include "core/cluster/devicename.h"
#include "core/exchange/picturewords.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace pipewright {

namespace {

constexpr int mostDevices = 128;
constexpr double nominalFont = 11; // the font that all lengths are given for
constexpr double widestPicture = 20'000;
constexpr double narrowestInFonts = 24;
constexpr double narrowestFull = 900; // pixels: in a narrower picture a device has one line at the left
constexpr double fullLabels = 148;
constexpr double columnGap = 18;
constexpr double legendRowHeight = 22;
constexpr double axisHeight = 30, axisBelow = 22;
constexpr double headingLine = 17;

const PictureTheme& themeOf(PictureColours colours)
{
    switch (colours) {
    case PictureColours::Light: return lightTheme;
    case PictureColours::Dark: return darkTheme;
    case PictureColours::Paper: return paperTheme;
    case PictureColours::Grey: return greyTheme;
    }
    return lightTheme;
}

void checkOptions(const std::vector<PicturePanel>& panels, const PictureOptions& options)
{
    if (panels.empty())
        throw Error("picture", "there is no schedule to draw");
    for (const PicturePanel& panel : panels)
        if (panel.measured && panel.measured->start.size() != panel.prediction->program.tasks.size())
            throw Error("picture", "the measurement is of another program than the prediction",
                        "record a run of this design");
    if (!(options.fontSize >= 4 && options.fontSize <= 100))
        throw Error("font size", fmt::format("{:.4g} pixels", options.fontSize), "between 4 and 100: 3pt and 75pt");
    if (!(options.width >= narrowestInFonts * options.fontSize && options.width <= widestPicture))
        throw Error("picture width", fmt::format("{:.4g} pixels", options.width),
                    fmt::format("between {:.4g}, which is {:g} times the font, and {:g}; 96 are an inch",
                                narrowestInFonts * options.fontSize, narrowestInFonts, widestPicture));
    if (options.laneHeight != 0 && !(options.laneHeight >= 2 && options.laneHeight <= 400))
        throw Error("lane height", fmt::format("{:.4g} pixels", options.laneHeight), "between 2 and 400");
}

// Adds the bands of a panel with their views.
void addBands(PictureScene& scene, const PicturePanel& panel)
{
    const auto view = [&panel](bool measured, bool outlined) { return PictureView{&panel, measured, outlined, {}}; };
    const auto add = [&scene](std::vector<PictureView> views) {
        scene.bands.emplace_back();
        scene.bands.back().views = std::move(views);
    };
    if (!panel.measured)
        return add({view(false, false)});
    switch (scene.options.measured) {
    case MeasuredPlace::Over: return add({view(true, true)});
    case MeasuredPlace::Alone: return add({view(true, false)});
    case MeasuredPlace::Beside: return add({view(false, false), view(true, false)});
    case MeasuredPlace::Under: add({view(false, false)}); return add({view(true, false)});
    }
}

double laneHeightOf(const PictureScene& scene, int devices)
{
    if (scene.options.laneHeight > 0)
        return scene.options.laneHeight * nominalFont / scene.options.fontSize;
    if (scene.compact)
        return devices <= 8 ? 34 : devices <= 16 ? 24 : devices <= 48 ? 16 : 10;
    return devices <= 16 ? 62 : devices <= 48 ? 28 : 16; // many devices: flat lanes without second lines
}

double memoryHeightOf(const PictureScene& scene, const PictureBand& band)
{
    bool anyBytes = false;
    for (const Program::Device& device : band.panel().prediction->program.devices)
        anyBytes = anyBytes || device.peakBytes > 0;
    if (!scene.options.memory || !anyBytes)
        return 0;
    if (scene.compact)
        return band.devices <= 8 ? 38 : band.devices <= 16 ? 22 : 12;
    return band.devices <= 16 ? 58 : band.devices <= 48 ? 26 : 14;
}

void placeColumns(PictureScene& scene)
{
    bool twoColumns = false;
    Nanoseconds end = 1;
    for (PictureBand& band : scene.bands) {
        const int all = static_cast<int>(band.panel().prediction->program.devices.size());
        band.devices = std::min(all, mostDevices);
        band.hiddenDevices = all - band.devices;
        band.laneHeight = laneHeightOf(scene, band.devices);
        band.memoryHeight = memoryHeightOf(scene, band);
        twoColumns = twoColumns || band.views.size() > 1;
        for (const PictureView& view : band.views) {
            end = std::max(end, endOf(view.shown()));
            if (view.outlined)
                end = std::max(end, endOf(view.panel->prediction->timeline));
        }
    }
    const bool bare = scene.options.colours == PictureColours::Paper || scene.options.colours == PictureColours::Grey;
    scene.margin = !scene.compact ? 16 : bare ? 2 : 8;
    scene.left = fullLabels;
    if (scene.compact) {
        scene.left = 0;
        for (const PictureBand& band : scene.bands)
            scene.left = std::max(scene.left, widthOf(deviceName(band.panel().design->cluster, band.devices - 1), 11));
        for (const PictureBand& band : scene.bands)
            for (int device = 0; band.memoryHeight >= 34 && device < band.devices; ++device)
                scene.left = std::max(scene.left, widthOf(memoryText(scene, band.views.front(), device), 9, true));
        scene.left += scene.margin + 8;
    }
    scene.right = scene.width - (scene.compact ? scene.margin + 4 : 24);
    const double whole = scene.right - scene.left;
    const double each = twoColumns ? (whole - columnGap) / 2 : whole;
    for (PictureBand& band : scene.bands)
        for (std::size_t column = 0; column < band.views.size(); ++column)
            band.views[column].scale = {scene.left + static_cast<double>(column) * (each + columnGap), each, 0, end};
}

// Places the legend right of the title where there is room, else in rows of its own. Returns where it ends.
double placeLegend(PictureScene& scene, double top, double rightOf, double titleHeight)
{
    double total = 0;
    const auto wide = [](const LegendEntry& entry) { return 24 + widthOf(entry.text, 11); };
    for (const LegendEntry& entry : scene.legend)
        total += wide(entry) + 16;
    if (scene.single && total > 0 && rightOf + total <= scene.right && titleHeight > 0) {
        double x = scene.right - total + 16;
        for (LegendEntry& entry : scene.legend) {
            entry.x = x;
            entry.top = 14;
            x += wide(entry) + 16;
        }
        return top;
    }
    double x = scene.margin;
    for (LegendEntry& entry : scene.legend) {
        if (x > scene.margin && x + wide(entry) > scene.width - scene.margin) {
            x = scene.margin;
            top += legendRowHeight;
        }
        entry.x = x;
        entry.top = top + 2;
        x += wide(entry) + 14;
    }
    return scene.legend.empty() ? top : top + legendRowHeight + 2;
}

double headingHeightOf(const PictureScene& scene, const PictureBand& band)
{
    if (scene.single || (!scene.options.titles && !scene.options.numbers))
        return scene.single ? 0 : 6;
    double lines = 1;
    if (scene.options.titles && scene.options.numbers)
        for (const PictureView& view : band.views)
            if (!headingFitsOneLine(scene, view))
                lines = 2;
    return lines * headingLine + 5;
}

void placeRows(PictureScene& scene)
{
    double y = 0;
    double titleEnd = 0;
    if (scene.single && scene.options.titles) {
        y = scene.compact ? 36 : 48;
        titleEnd = titleWidth(scene) + scene.margin + 24;
    }
    y = placeLegend(scene, y, titleEnd, y);
    scene.axisTop = y;
    y += scene.single && scene.options.axes ? axisHeight : 6;
    for (PictureBand& band : scene.bands) {
        band.headingTop = y;
        band.headingHeight = headingHeightOf(scene, band);
        band.lanesTop = y + band.headingHeight;
        band.memoryTop = band.lanesBottom() + (band.memoryHeight > 0 ? (scene.compact ? 6 : 34) : 0);
        band.bottom = band.memoryBottom() + (band.hiddenDevices > 0 ? 24 : 0);
        y = band.bottom + (scene.single ? 0 : 8);
    }
    if (!scene.single && scene.options.axes) {
        scene.axisTop = y - 8;
        y = scene.axisTop + axisBelow;
    }
    if (scene.single && scene.options.numbers) {
        scene.footerTop = y + (scene.compact ? 6 : 14);
        scene.footerHeight = 18 + 20 * footerRows(scene);
        y = scene.footerTop + scene.footerHeight;
    } else {
        y += 4;
    }
    scene.height = y;
}

} // namespace

Nanoseconds endOf(const Timeline& timeline)
{
    Nanoseconds end = 0;
    for (std::size_t id = 0; id < timeline.start.size(); ++id)
        if (timeline.start[id] != notRun)
            end = std::max(end, timeline.end[id]);
    return end;
}

double widthOf(std::string_view words, double size, bool mono, bool bold)
{
    std::size_t characters = 0;
    for (; !words.empty(); words.remove_prefix(firstCharacter(words).length))
        ++characters;
    return size * (mono ? 0.61 : bold ? 0.7 : 0.63) * static_cast<double>(characters);
}

int chunkOf(const Program& program, const Task& task)
{
    int before = 0;
    const auto count = [&](const std::vector<int>& placement, std::size_t stages) {
        for (std::size_t stage = 0; stage < std::min(stages, placement.size()); ++stage)
            before += placement[stage] == task.device;
    };
    const std::size_t stage = std::max(0, task.stage);
    if (task.replica == 0) {
        count(program.deviceOfStage, stage);
        return before;
    }
    count(program.deviceOfStage, program.deviceOfStage.size());
    for (std::size_t replica = 0; replica < program.replicaPlacements.size(); ++replica) {
        const std::vector<int>& placement = program.replicaPlacements[replica];
        if (replica + 1 == task.replica) {
            count(placement, stage);
            break;
        }
        count(placement, placement.size());
    }
    return before;
}

Bytes PictureScene::limitOf(const PictureView& view, int device) const
{
    const std::vector<DeviceSpec>& devices = view.panel->design->cluster.devices;
    return device < std::ssize(devices) ? devices[device].memory : 0;
}

PictureScene makePictureScene(const std::vector<PicturePanel>& panels, const PictureOptions& options)
{
    checkOptions(panels, options);
    PictureScene scene{options, themeOf(options.colours)};
    scene.grey = options.colours == PictureColours::Grey;
    for (const PicturePanel& panel : panels)
        addBands(scene, panel);
    scene.single = scene.bands.size() == 1 && scene.bands.front().views.size() == 1;
    scene.width = options.width * nominalFont / options.fontSize;
    scene.compact = !scene.single || scene.width < narrowestFull
                    || (options.laneHeight > 0 && options.laneHeight * nominalFont / options.fontSize < 40);
    placeColumns(scene);
    if (options.legend)
        scene.legend = legendOf(scene);
    placeRows(scene);
    return scene;
}

} // namespace pipewright
