// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/picturewords.h"

#include "core/cluster/devicename.h"
#include "core/exchange/picturelanes.h"
#include "core/predict/bubblerates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace pipewright {

namespace {

struct Number {
    std::string name, value;
};

std::string plural(std::int64_t count, std::string_view noun)
{
    const std::string_view ending = count == 1 ? "" : noun.ends_with("ch") ? "es" : "s";
    return fmt::format("{} {}{}", count, noun, ending);
}

std::string durationOf(Nanoseconds value)
{
    std::string text = formatDuration(value);
    if (text.ends_with(" us"))
        text.replace(text.size() - 2, 1, "\u00b5");
    return text;
}

std::string nameOf(const PicturePanel& panel)
{
    if (!panel.title.empty())
        return panel.title;
    if (!panel.design->name.empty())
        return panel.design->name;
    return panel.design->schedule.family.empty() ? "Schedule" : panel.design->schedule.family;
}

// The schedule's name; with "measured" or "predicted" where the two have lanes of their own or only one is shown.
std::string nameOf(const PictureView& view)
{
    const bool sided = view.panel->measured && !view.outlined;
    return nameOf(*view.panel) + (!sided ? "" : view.measured ? ", measured" : ", predicted");
}

std::string sizeOf(const PictureView& view)
{
    const Program& program = view.program();
    const std::string& family = view.panel->design->schedule.family;
    return fmt::format("{}{}, {}, {}", family.empty() ? "" : family + ", ",
                       plural(static_cast<int>(program.devices.size()), "device"), plural(program.stages(), "stage"),
                       plural(program.microbatches, "microbatch"));
}

std::string shownDevice(const PictureView& view, int device)
{
    return deviceName(view.panel->design->cluster, device);
}

// The fullest device, as predicted.
Number peakOf(const PictureView& view, bool withDevice)
{
    int fullest = 0;
    Bytes peak = 0;
    double activations = 0;
    const std::vector<Program::Device>& devices = view.program().devices;
    for (std::size_t device = 0; device < devices.size(); ++device) {
        if (devices[device].peakBytes > peak) {
            peak = devices[device].peakBytes;
            fullest = static_cast<int>(device);
        }
        activations = std::max(activations, devices[device].peakActivations);
    }
    const std::string name = view.measured ? "peak predicted" : "peak";
    if (peak == 0)
        return {name, fmt::format("{:.3g} microbatches", activations)};
    return {name, formatSize(peak) + (withDevice ? " on " + shownDevice(view, fullest) : std::string())};
}

std::vector<Number> numbersOf(const PictureView& view, bool withDevice)
{
    const Nanoseconds predicted = view.panel->prediction->metrics.makespan;
    const Metrics metrics = view.measured ? measure(view.program(), view.shown()) : view.panel->prediction->metrics;
    std::string makespan = durationOf(metrics.makespan);
    if (view.outlined) {
        // As everywhere: predicted, then measured, then how much longer or shorter the measured one is.
        const Nanoseconds measured = endOf(view.shown());
        makespan = fmt::format("{} predicted, {} measured ({:+.1f} %)", durationOf(predicted), durationOf(measured),
                               100 * (predicted > 0 ? shareOf(measured, predicted) - 1 : 0));
    }
    return {{"makespan", makespan},
            {fmt::format("{}{}", rateOfMakespan.name, view.outlined ? " measured" : ""),
             fmt::format("{:.1f} % of devices × makespan (span {:.1f} %)", 100 * metrics.rateMakespan,
                         100 * metrics.rateSpan)},
            peakOf(view, withDevice)};
}

constexpr double headingNumbers = 10; // font size

// Width available to a heading from its left edge. numberLine() leaves out the last numbers that do not fit.
double headingRoom(const PictureScene& scene, const PictureView& view)
{
    return view.scale.left + view.scale.width - (view.scale.left > scene.left ? view.scale.left : scene.margin);
}

std::string numberLine(const PictureScene& scene, const PictureView& view)
{
    std::string line;
    for (const Number& number : numbersOf(view, false)) {
        const std::string longer = line + (line.empty() ? "" : " \u00b7 ") + number.name + " " + number.value;
        if (!line.empty() && widthOf(longer, headingNumbers) > headingRoom(scene, view))
            break;
        line = longer;
    }
    return line;
}

double wide(const Number& number)
{
    return widthOf(number.name, 11) + 5 + widthOf(number.value, 11, true) + 22;
}

std::vector<std::vector<Number>> footerLines(const PictureScene& scene)
{
    std::vector<std::vector<Number>> lines(1);
    double x = scene.margin;
    for (Number& number : numbersOf(scene.bands.front().views.front(), true)) {
        if (!lines.back().empty() && x + wide(number) - 22 > scene.width - scene.margin) {
            lines.emplace_back();
            x = scene.margin;
        }
        x += wide(number);
        lines.back().push_back(std::move(number));
    }
    return lines;
}

std::string stagesOn(const Program& program, int device)
{
    std::string text;
    int count = 0;
    const auto addStages = [&](const std::vector<int>& placement) {
        for (std::size_t stage = 0; stage < placement.size(); ++stage)
            if (placement[stage] == device && ++count <= 4)
                text += (count > 1 ? ", " : "") + std::to_string(stage);
    };
    addStages(program.deviceOfStage);
    for (const std::vector<int>& placement : program.replicaPlacements)
        addStages(placement);
    if (count > 4)
        return plural(count, "stage");
    return (count == 1 ? "stage " : "stages ") + text;
}

void drawLaneName(const PictureScene& scene, SvgWriter& svg, const PictureBand& band, int device)
{
    const PictureTheme& theme = scene.theme;
    const double top = band.lanesTop + device * band.laneHeight;
    if (scene.compact || band.laneHeight < 40) {
        if (band.laneHeight >= 9)
            svg.text(scene.margin, top + band.laneHeight / 2 + 4, shownDevice(band.views.front(), device),
                     {band.laneHeight < 20 ? 9.0 : 11.0, theme.text});
        return;
    }
    const PictureView& view = band.views.front();
    svg.text(16, top + 20, shownDevice(band.views.front(), device), {13, theme.text, false, true});
    svg.text(16, top + 34, stagesOn(view.program(), device), {11, theme.dim});
    const Program::Device& held = view.program().devices[device];
    const Bytes limit = scene.limitOf(view, device);
    const bool over = limit > 0 && held.peakBytes > limit;
    const std::string memory =
        held.peakBytes > 0 ? "peak " + formatSize(held.peakBytes) : fmt::format("{:.3g} x act.", held.peakActivations);
    svg.text(16, top + 50, memory, {11, over ? theme.bad : theme.dim, true});
    if (limit > 0 && held.peakBytes > 0) {
        const double share = std::min(1.0, static_cast<double>(held.peakBytes) / static_cast<double>(limit));
        svg.fill({88, top + 15.5, 44, 4}, theme.hairline, 2);
        svg.fill({88, top + 15.5, std::max(2.0, 44 * share), 4}, over ? theme.bad : theme.accent, 2);
    }
}

void drawMemoryName(const PictureScene& scene, SvgWriter& svg, const PictureBand& band, int device)
{
    const PictureTheme& theme = scene.theme;
    const double top = band.memoryTop + device * band.memoryHeight;
    if (band.memoryHeight < 34) {
        if (band.memoryHeight >= 9)
            svg.text(scene.margin, top + band.memoryHeight / 2 + 4, shownDevice(band.views.front(), device),
                     {band.memoryHeight < 20 ? 9.0 : 11.0, theme.dim});
        return;
    }
    const PictureView& view = band.views.front();
    const Bytes peak = view.program().devices[device].peakBytes;
    const Bytes limit = scene.limitOf(view, device);
    const double middle = top + band.memoryHeight / 2;
    svg.text(scene.margin, middle - 3, shownDevice(band.views.front(), device),
             {scene.compact ? 11.0 : 12.0, theme.text});
    svg.text(scene.margin, middle + 11, memoryText(scene, view, device),
             {scene.compact ? 9.0 : 11.0, limit > 0 && peak > limit ? theme.bad : theme.dim, true});
}

// A step of 1, 2 or 5 times a power of ten, wide enough for the labels.
Nanoseconds tickStep(const TimeScale& scale)
{
    const double wanted = static_cast<double>(scale.end - scale.begin) * 84 / scale.width;
    for (Nanoseconds power = 1;; power *= 10)
        for (const int factor : {1, 2, 5})
            if (static_cast<double>(factor * power) >= wanted)
                return factor * power;
}

void drawAxis(const PictureScene& scene, SvgWriter& svg, const TimeScale& scale, double baseline)
{
    const Nanoseconds step = tickStep(scale);
    // One unit for the whole axis: the largest that fits the range at least twice.
    const Nanoseconds range = scale.end - scale.begin;
    const auto [unit, name] = range >= 2'000'000'000 ? std::pair{1e9, "s"}
                              : range >= 2'000'000   ? std::pair{1e6, "ms"}
                              : range >= 2'000       ? std::pair{1e3, "\u00b5s"}
                                                     : std::pair{1.0, "ns"};
    for (Nanoseconds time = 0; time <= scale.end; time += step) {
        const double x = std::floor(scale.x(time)) + 0.5;
        for (const PictureBand& band : scene.bands) {
            svg.line(x, band.lanesTop - (scene.single ? 6 : 0), x, band.lanesBottom(), scene.theme.hairline, 0.6);
            if (band.memoryHeight > 0)
                svg.line(x, band.memoryTop, x, band.memoryBottom(), scene.theme.hairline, 0.6);
        }
        const std::string label = fmt::format("{:g} {}", static_cast<double>(time) / unit, name);
        const double half = widthOf(label, 11, true) / 2;
        const bool atEnd = x + half > scene.width - 2;
        svg.text(atEnd ? scene.width - 2 : x, baseline, label,
                 {11, scene.theme.dim, true, false, atEnd ? Anchor::End : Anchor::Middle});
    }
}

void drawSign(const PictureScene& scene, SvgWriter& svg, const LegendEntry& entry)
{
    const PictureTheme& theme = scene.theme;
    const Rectangle area{entry.x, entry.top, 18, 18};
    using Sign = LegendEntry::Sign;
    switch (entry.sign) {
    case Sign::Operation:
        svg.fill(area, theme.colourOf(entry.op), 3);
        drawTexture(scene, svg, area, entry.op);
        if (scene.grey) {
            svg.outline(area, theme.ink, 0.6, 3);
            svg.fill({area.x + 4.5, area.y + 3, 9, 12}, theme.background, 2);
        }
        svg.text(area.x + 9, area.y + 13, std::string(1, letter(entry.op)),
                 {11, theme.ink, false, true, Anchor::Middle});
        return;
    case Sign::Reduction: svg.fill(area, theme.reduction, 3); return;
    case Sign::SecondStage:
        svg.fill(area, theme.colourOf(Op::F), 3, scene.grey ? 1 : 0.58);
        if (scene.grey) {
            svg.outline(area, theme.ink, 0.6, 3);
            svg.fill({area.x, area.y, area.width, 2.5}, theme.ink);
        }
        return;
    case Sign::Idle: drawIdle(scene, svg, area); return;
    case Sign::Predicted:
        svg.strokedPath(fmt::format("M{0} {1}V{2}H{3}V{1}M{0} {4}V{5}H{3}V{4}", area.x + 0.5, area.y + 5, area.y + 2,
                                    area.right() - 0.5, area.bottom() - 5, area.bottom() - 2),
                        scene.grey ? theme.ink : theme.dim, 1, 1, "3 2");
        return;
    case Sign::Slower:
        svg.fill(area, theme.colourOf(Op::F), 3);
        if (scene.grey)
            svg.outline(area, theme.ink, 0.6, 3);
        svg.fill({area.x, area.bottom() - 3, area.width, 3}, theme.bad);
        return;
    case Sign::Limit: svg.line(area.x, area.y + 9, area.right(), area.y + 9, theme.bad, 1, "4 3"); return;
    }
}

} // namespace

std::vector<LegendEntry> legendOf(const PictureScene& scene)
{
    using Sign = LegendEntry::Sign;
    bool present[opCount + 1] = {}, paler = false, idle = false, outlined = false, slower = false, limit = false;
    for (const PictureBand& band : scene.bands)
        for (const PictureView& view : band.views) {
            const std::vector<Task>& tasks = view.program().tasks;
            const Timeline& shown = view.shown();
            for (TaskId id = 0; id < tasks.size(); ++id) {
                const Task& task = tasks[id];
                if (shown.end[id] <= shown.start[id])
                    continue;
                if (isReduction(task.kind))
                    present[opCount] = true;
                else if (isBlockOrUpdate(task.kind))
                    present[isUpdate(task.kind) ? indexOf(Op::U) : indexOf(task.op)] = true;
            }
            const std::vector<int>& placement = view.program().deviceOfStage;
            paler =
                paler || view.program().devices.size() < placement.size() || !view.program().replicaPlacements.empty();
            idle = idle || !scene.grey;
            outlined = outlined || view.outlined;
            slower = slower || view.measured;
            for (int device = 0; band.memoryHeight > 0 && device < band.devices; ++device)
                limit = limit || scene.limitOf(view, device) > 0;
        }
    std::vector<LegendEntry> legend;
    for (int op = 0; op < opCount; ++op)
        if (present[op])
            legend.push_back({Sign::Operation, std::string(describe(static_cast<Op>(op))), static_cast<Op>(op)});
    if (present[opCount])
        legend.push_back({Sign::Reduction, "sum of gradients"});
    if (paler)
        legend.push_back({Sign::SecondStage, "a device's second stage"});
    if (idle)
        legend.push_back({Sign::Idle, "idle"});
    if (outlined)
        legend.push_back({Sign::Predicted, "predicted"});
    if (slower)
        legend.push_back({Sign::Slower, fmt::format("over {:g} % slower than predicted", 100 * scene.options.spread)});
    if (limit)
        legend.push_back({Sign::Limit, "memory limit"});
    return legend;
}

double titleWidth(const PictureScene& scene)
{
    const PictureView& view = scene.bands.front().views.front();
    return std::max(widthOf(nameOf(view), scene.compact ? 13 : 15, false, true), widthOf(sizeOf(view), 11));
}

bool headingFitsOneLine(const PictureScene& scene, const PictureView& view)
{
    return widthOf(nameOf(view), 12, false, true) + 16 + widthOf(numberLine(scene, view), headingNumbers)
           <= headingRoom(scene, view);
}

std::string memoryText(const PictureScene& scene, const PictureView& view, int device)
{
    std::string peak = formatSize(view.program().devices[device].peakBytes);
    const Bytes limit = scene.limitOf(view, device);
    if (limit == 0)
        return peak;
    const std::string of = formatSize(limit);
    // A unit that both have is written once.
    if (const std::size_t unit = of.find(' '); unit != std::string::npos && peak.ends_with(of.substr(unit)))
        peak.resize(peak.size() - (of.size() - unit));
    return peak + " / " + of;
}

int footerRows(const PictureScene& scene)
{
    return static_cast<int>(footerLines(scene).size());
}

void drawHeader(const PictureScene& scene, SvgWriter& svg)
{
    const PictureTheme& theme = scene.theme;
    if (scene.single && scene.options.titles) {
        const PictureView& view = scene.bands.front().views.front();
        svg.text(scene.margin, scene.compact ? 15 : 22, nameOf(view),
                 {scene.compact ? 13.0 : 15.0, theme.text, false, true});
        svg.text(scene.margin, scene.compact ? 30 : 39, sizeOf(view), {11, theme.dim});
    }
    for (const LegendEntry& entry : scene.legend) {
        drawSign(scene, svg, entry);
        svg.text(entry.x + 24, entry.top + 12.5, entry.text, {11, theme.dim});
    }
}

void drawHeadings(const PictureScene& scene, SvgWriter& svg, const PictureBand& band)
{
    if (scene.single)
        return;
    for (const PictureView& view : band.views) {
        const bool first = view.scale.left <= scene.left;
        const double begin = first ? scene.margin : view.scale.left;
        double baseline = band.headingTop + 13;
        if (scene.options.titles) {
            svg.text(begin, baseline, nameOf(view), {12, scene.theme.text, false, true});
            if (band.headingHeight > 24)
                baseline += 16;
        }
        if (!scene.options.numbers)
            continue;
        const bool beside = scene.options.titles && band.headingHeight <= 24;
        svg.text(beside ? view.scale.left + view.scale.width : begin, baseline, numberLine(scene, view),
                 {headingNumbers, scene.theme.dim, false, false, beside ? Anchor::End : Anchor::Start});
    }
}

void drawNames(const PictureScene& scene, SvgWriter& svg, const PictureBand& band)
{
    const double end = scene.compact ? scene.right : scene.width, begin = scene.compact ? scene.left : 0;
    for (int device = 0; device < band.devices; ++device) {
        const double top = band.lanesTop + device * band.laneHeight + 0.5;
        svg.line(begin, top, end, top, scene.theme.hairline);
        drawLaneName(scene, svg, band, device);
    }
    svg.line(begin, band.lanesBottom() + 0.5, end, band.lanesBottom() + 0.5, scene.theme.hairline);
    if (band.memoryHeight > 0) {
        if (!scene.compact)
            svg.text(scene.margin, band.memoryTop - 8, "MEMORY", {11, scene.theme.dim, false, true});
        for (int device = 0; device < band.devices; ++device)
            drawMemoryName(scene, svg, band, device);
    }
    if (band.hiddenDevices > 0)
        svg.text(scene.margin, band.bottom - 4, fmt::format("and {} more devices", band.hiddenDevices),
                 {11, scene.theme.dim});
}

void drawAxes(const PictureScene& scene, SvgWriter& svg)
{
    if (!scene.options.axes)
        return;
    const PictureBand* widest = &scene.bands.front();
    for (const PictureBand& band : scene.bands)
        if (band.views.size() > widest->views.size())
            widest = &band;
    for (const PictureView& view : widest->views)
        drawAxis(scene, svg, view.scale, scene.axisTop + (scene.single ? 18 : 14));
}

void drawFooter(const PictureScene& scene, SvgWriter& svg)
{
    if (scene.footerTop <= 0)
        return;
    const PictureTheme& theme = scene.theme;
    const PictureView& view = scene.bands.front().views.front();
    svg.fill({0, scene.footerTop, scene.width, scene.footerHeight}, theme.panel);
    svg.line(0, scene.footerTop + 0.5, scene.width, scene.footerTop + 0.5, theme.hairline);
    double x = scene.margin, baseline = scene.footerTop + 24;
    const std::vector<std::vector<Number>> lines = footerLines(scene);
    for (std::size_t line = 0; line < lines.size(); ++line) {
        x = scene.margin;
        baseline = scene.footerTop + 24 + 20 * static_cast<double>(line);
        for (const Number& number : lines[line]) {
            svg.text(x, baseline, number.name, {11, theme.dim});
            svg.text(x + widthOf(number.name, 11) + 5, baseline, number.value, {11, theme.text, true});
            x += wide(number);
        }
    }
    std::string source = "costs " + view.panel->design->costs.source;
    if (view.measured && !view.panel->measuredSource.empty())
        source = view.panel->measuredSource + ", " + source;
    source += fmt::format(" \u00b7 {} blocks", view.program().computeCount());
    // The source is left out where the numbers need its space.
    if (x + widthOf(source, 11) < scene.width - scene.margin)
        svg.text(scene.width - scene.margin, baseline, source, {11, theme.dim, false, false, Anchor::End});
}

} // namespace pipewright
