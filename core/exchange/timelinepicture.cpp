// SPDX-License-Identifier: GPL-3.0-or-later
// Lays out lanes, memory curves, ruler and footer top to bottom as SVG. Block geometry comes from laneblocks.h; curves
// are reduced to two points per pixel. O(blocks log blocks).
#include "core/exchange/timelinepicture.h"

#include "core/base/diagnostic.h"
#include "core/exchange/laneblocks.h"
#include "core/exchange/picturetheme.h"
#include "core/exchange/svgwriter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace pipewright {

namespace {

constexpr int mostDevices = 128;
constexpr double labelColumn = 148, rightMargin = 24, headerHeight = 48, axisHeight = 30, footerHeight = 38;

// The state shared by all parts of the picture.
struct Scene {
    const Design& design;
    const Prediction& prediction;
    const PictureOptions& options;
    const PictureTheme& theme;
    int devices = 0, hiddenDevices = 0;
    double laneHeight = 62, memoryHeight = 58; // per device; the memory height is 0 when memory is unknown
    TimeScale scale{};

    double lanesTop() const { return headerHeight + axisHeight; }
    double lanesBottom() const { return lanesTop() + devices * laneHeight; }
    double memoryTop() const { return lanesBottom() + (memoryHeight > 0 ? 34 : 0); }
    double footerTop() const { return memoryTop() + devices * memoryHeight + (hiddenDevices > 0 ? 24 : 0) + 14; }
    double height() const { return footerTop() + footerHeight; }
    double width() const { return options.width; }
    const Timeline& shown() const { return options.measured ? *options.measured : prediction.timeline; }
    Bytes limitOf(int device) const
    {
        const auto index = static_cast<std::size_t>(device);
        return index < design.cluster.devices.size() ? design.cluster.devices[index].memory : 0;
    }
    Bytes peakOf(int device) const { return prediction.program.devices[device].peakBytes; }
};

Nanoseconds endOf(const Timeline& timeline)
{
    Nanoseconds end = 0;
    for (std::size_t id = 0; id < timeline.start.size(); ++id)
        if (timeline.start[id] != notRun)
            end = std::max(end, timeline.end[id]);
    return end;
}

Scene makeScene(const Design& design, const Prediction& prediction, const PictureOptions& options)
{
    if (options.width < 480 || options.width > 20'000)
        throw Error("picture width", fmt::format("{} pixels", options.width), "between 480 and 20000");
    if (options.measured && options.measured->start.size() != prediction.program.tasks.size())
        throw Error("picture", "the measurement is of another program than the prediction",
                    "record a run of this design");

    Scene scene{design, prediction, options, options.dark ? darkTheme : lightTheme};
    const int all = static_cast<int>(prediction.program.devices.size());
    scene.devices = std::min(all, mostDevices);
    scene.hiddenDevices = all - scene.devices;
    if (scene.devices > 16) { // many devices: flat lanes without second lines
        scene.laneHeight = scene.devices > 48 ? 16 : 28;
        scene.memoryHeight = scene.devices > 48 ? 14 : 26;
    }
    bool anyBytes = false;
    for (int device = 0; device < scene.devices; ++device)
        anyBytes = anyBytes || scene.peakOf(device) > 0;
    if (!options.memory || !anyBytes)
        scene.memoryHeight = 0;
    Nanoseconds end = endOf(prediction.timeline);
    if (options.measured)
        end = std::max(end, endOf(*options.measured));
    scene.scale = {labelColumn, options.width - labelColumn - rightMargin, 0, std::max<Nanoseconds>(end, 1)};
    return scene;
}

std::string plural(std::int64_t count, std::string_view noun)
{
    const std::string_view ending = count == 1 ? "" : noun.ends_with("ch") ? "es" : "s";
    return fmt::format("{} {}{}", count, noun, ending);
}

void drawTexture(const Scene& scene, SvgWriter& svg, const Rectangle& area, Op op)
{
    const Rectangle inner{area.x + 1, area.y + 1, area.width - 2, area.height - 2};
    if (inner.width < 4)
        return;
    switch (op) {
    case Op::I: svg.strokedPath(hatch(inner, 9, true), scene.theme.ink, 1, 0.3); break;
    case Op::B: svg.strokedPath(hatch(inner, 11, true) + hatch(inner, 11, false), scene.theme.ink, 1, 0.2); break;
    case Op::W: svg.filledPath(dots(inner, 7, 1.6), scene.theme.ink, 0.33); break;
    case Op::F:
    case Op::U:
    case Op::R: break;
    }
}

// Letter over microbatch where both fit, else the letter alone, else nothing.
void drawLetters(const Scene& scene, SvgWriter& svg, const Rectangle& area, const Task& task, Op op)
{
    const std::string number = isUpdate(task.kind) ? std::string() : std::to_string(task.microbatch);
    const double middle = area.x + area.width / 2;
    const bool both = !number.empty() && area.height >= 30
                      && area.width >= std::max(11.0, 6.7 * static_cast<double>(number.size()) + 3);
    TextStyle style{both ? 12.0 : 11.0, scene.theme.ink, false, true, Anchor::Middle};
    const double centre = area.y + area.height / 2;
    if (both) {
        svg.text(middle, centre - 2.5, std::string(1, letter(op)), style);
        style.bold = false;
        style.size = 11;
        style.mono = true;
        svg.text(middle, centre + 12, number, style);
    } else if (area.width >= 9 && area.height >= 12) {
        svg.text(middle, centre + 4, std::string(1, letter(op)), style);
    }
}

bool isSlower(const Scene& scene, TaskId task)
{
    if (!scene.options.measured || task == none)
        return false;
    const Timeline& predicted = scene.prediction.timeline;
    const double expected = static_cast<double>(predicted.end[task] - predicted.start[task]);
    const double took = static_cast<double>(scene.options.measured->end[task] - scene.options.measured->start[task]);
    return took > expected * (1 + scene.options.spread);
}

void drawLane(const Scene& scene, SvgWriter& svg, const Lane& lane, double top)
{
    const double inset = scene.laneHeight >= 40 ? 7 : scene.laneHeight >= 20 ? 3 : 1.5;
    const Rectangle band{0, top + inset, 0, scene.laneHeight - 2 * inset};
    for (const auto& [from, to] : lane.idle)
        svg.strokedPath(hatch({from + 1, band.y + 2, to - from - 2, band.height - 4}, 8, false), scene.theme.hairline,
                        1);
    // Blocks too narrow for corners, texture and letters are one path per colour.
    std::string plain[opCount + 1], slower;
    for (const LaneShape& shape : lane.shapes) {
        // A thin gap of background separates equal neighbours.
        const double width = std::max(shape.to - shape.from, 0.5);
        const double gap = shape.task == none ? 0 : width >= 5 ? 0.5 : width >= 3 ? 0.25 : 0;
        const Rectangle area{shape.from + gap, band.y, width - 2 * gap, band.height};
        const bool decorated = shape.task != none && width >= 5;
        if (decorated)
            svg.fill(area, scene.theme.colourOf(shape.colour), std::min(3.0, width / 4));
        else
            appendRectangle(plain[shape.colour], area);
        if (shape.task == none)
            continue;
        if (decorated && !shape.isReduction()) {
            drawTexture(scene, svg, area, shape.op());
            drawLetters(scene, svg, area, scene.prediction.program.tasks[shape.task], shape.op());
        }
        if (isSlower(scene, shape.task))
            appendRectangle(slower, {area.x, area.bottom() - 3, area.width, 3});
    }
    for (std::size_t i = 0; i + 1 < lane.shapes.size(); ++i)
        if (const double width = lane.shapes[i + 1].to - lane.shapes[i].from; lane.shapes[i].joined && width >= 8)
            svg.outline({lane.shapes[i].from + 0.5, band.y - 1.5, width - 1, band.height + 3}, scene.theme.text, 1, 3);
    for (int colour = 0; colour <= opCount; ++colour)
        svg.filledPath(plain[colour], scene.theme.colourOf(colour));
    svg.filledPath(slower, scene.theme.bad);
}

void drawPredictedOutlines(const Scene& scene, SvgWriter& svg, const Lane& lane, double top)
{
    const double inset = scene.laneHeight >= 40 ? 4.5 : 1;
    for (const LaneShape& shape : lane.shapes)
        if (shape.task != none && shape.to - shape.from >= 3)
            svg.outline({shape.from, top + inset, shape.to - shape.from, scene.laneHeight - 2 * inset}, scene.theme.dim,
                        1, 3, "3 2");
}

std::string stagesOn(const Scene& scene, int device)
{
    std::string text;
    int count = 0;
    const auto addStages = [&](const std::vector<int>& placement) {
        for (std::size_t stage = 0; stage < placement.size(); ++stage)
            if (placement[stage] == device && ++count <= 4)
                text += (count > 1 ? ", " : "") + std::to_string(stage);
    };
    addStages(scene.prediction.program.deviceOfStage);
    for (const std::vector<int>& placement : scene.prediction.program.replicaPlacements)
        addStages(placement);
    if (count > 4)
        return plural(count, "stage");
    return (count == 1 ? "stage " : "stages ") + text;
}

void drawLaneLabel(const Scene& scene, SvgWriter& svg, int device, double top)
{
    const PictureTheme& theme = scene.theme;
    if (scene.laneHeight < 40) {
        svg.text(16, top + scene.laneHeight / 2 + 4, fmt::format("device {}", device),
                 {scene.laneHeight < 20 ? 9.0 : 11.0, theme.text});
        return;
    }
    svg.text(16, top + 20, fmt::format("Device {}", device), {13, theme.text, false, true});
    svg.text(16, top + 34, stagesOn(scene, device), {11, theme.dim});
    const Bytes peak = scene.peakOf(device), limit = scene.limitOf(device);
    std::string memory = fmt::format("{:.3g} x act.", scene.prediction.program.devices[device].peakActivations);
    if (peak > 0)
        memory = formatSize(peak);
    const bool over = limit > 0 && peak > limit;
    svg.text(16, top + 50, (peak > 0 ? "peak " : "") + memory, {11, over ? theme.bad : theme.dim, true});
    if (limit > 0 && peak > 0) {
        const double share = std::min(1.0, static_cast<double>(peak) / static_cast<double>(limit));
        svg.fill({88, top + 15.5, 44, 4}, theme.hairline, 2);
        svg.fill({88, top + 15.5, std::max(2.0, 44 * share), 4}, over ? theme.bad : theme.accent, 2);
    }
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

void drawAxis(const Scene& scene, SvgWriter& svg)
{
    const Nanoseconds step = tickStep(scene.scale);
    // One unit for the whole axis: the largest that fits the range at least twice.
    const Nanoseconds range = scene.scale.end - scene.scale.begin;
    const auto [unit, name] = range >= 2'000'000'000 ? std::pair{1e9, "s"}
                              : range >= 2'000'000   ? std::pair{1e6, "ms"}
                              : range >= 2'000       ? std::pair{1e3, "us"}
                                                     : std::pair{1.0, "ns"};
    const double bottom = scene.lanesBottom();
    for (Nanoseconds time = 0; time <= scene.scale.end; time += step) {
        const double x = std::floor(scene.scale.x(time)) + 0.5;
        svg.line(x, scene.lanesTop() - 6, x, bottom, scene.theme.hairline, 0.6);
        if (scene.memoryHeight > 0)
            svg.line(x, scene.memoryTop(), x, scene.memoryTop() + scene.devices * scene.memoryHeight,
                     scene.theme.hairline, 0.6);
        const bool atEnd = x + 24 > scene.width();
        svg.text(atEnd ? scene.width() - 4 : x, scene.lanesTop() - 12,
                 fmt::format("{:g} {}", static_cast<double>(time) / unit, name),
                 {11, scene.theme.dim, true, false, atEnd ? Anchor::End : Anchor::Middle});
    }
}

void drawHeader(const Scene& scene, SvgWriter& svg)
{
    const PictureTheme& theme = scene.theme;
    const Schedule& schedule = scene.design.schedule;
    std::string title = scene.options.title.empty() ? scene.design.name : scene.options.title;
    if (title.empty())
        title = schedule.family.empty() ? "Schedule" : schedule.family;
    svg.text(16, 22, title, {15, theme.text, false, true});
    svg.text(16, 39,
             fmt::format("{}{}, {}, {}", schedule.family.empty() ? "" : schedule.family + ", ",
                         plural(static_cast<int>(scene.prediction.program.devices.size()), "device"),
                         plural(scene.prediction.program.stages(), "stage"),
                         plural(scene.prediction.program.microbatches, "microbatch")),
             {11, theme.dim});

    std::set<Op> present;
    const Timeline& shown = scene.shown();
    for (TaskId id = 0; id < scene.prediction.program.tasks.size(); ++id) {
        const Task& task = scene.prediction.program.tasks[id];
        if ((task.kind == TaskKind::Compute || isUpdate(task.kind)) && shown.end[id] > shown.start[id])
            present.insert(isUpdate(task.kind) ? Op::U : task.op);
    }
    double right = scene.width() - rightMargin;
    for (auto op = present.rbegin(); op != present.rend(); ++op) {
        const std::string name(describe(*op));
        right -= 6.4 * static_cast<double>(name.size());
        svg.text(right, 26, name, {11, theme.dim});
        const Rectangle swatch{right - 24, 14, 18, 18};
        svg.fill(swatch, theme.colourOf(static_cast<int>(*op)), 3);
        drawTexture(scene, svg, swatch, *op);
        svg.text(swatch.x + 9, 27, std::string(1, letter(*op)), {11, theme.ink, false, true, Anchor::Middle});
        right -= 24 + 16;
    }
}

// The curve as steps, at most two points per pixel: in each pixel the highest value, then the last.
std::string stepPath(const Scene& scene, const std::vector<MemorySample>& samples, const Rectangle& area, double top,
                     Nanoseconds end, bool closed)
{
    std::string path;
    const auto y = [&](Bytes bytes) { return area.bottom() - static_cast<double>(bytes) / top * area.height; };
    const auto to = [&path](char command, double value) {
        path += command;
        appendNumber(path, value);
    };
    bool first = true;
    for (std::size_t i = 0; i < samples.size();) {
        const double x = scene.scale.x(samples[i].time);
        Bytes highest = samples[i].bytes, last = samples[i].bytes;
        std::size_t next = i + 1;
        for (; next < samples.size() && scene.scale.x(samples[next].time) - x < 0.75; ++next) {
            highest = std::max(highest, samples[next].bytes);
            last = samples[next].bytes;
        }
        if (first) {
            to('M', x);
            to(' ', closed ? area.bottom() : y(highest));
            first = false;
        }
        to('H', x);
        to('V', y(highest));
        if (last != highest) {
            to('H', x + 0.5);
            to('V', y(last));
        }
        i = next;
    }
    if (first)
        return path;
    to('H', scene.scale.x(end));
    if (closed) {
        to('V', area.bottom());
        path += 'z';
    }
    return path;
}

void drawMemory(const Scene& scene, SvgWriter& svg, int device, double rowTop)
{
    const PictureTheme& theme = scene.theme;
    const auto index = static_cast<std::size_t>(device);
    const double inset = scene.memoryHeight >= 40 ? 6 : 1;
    const Rectangle area{scene.scale.left, rowTop + inset, scene.scale.width, scene.memoryHeight - 2 * inset};
    const Bytes limit = scene.limitOf(device);
    // All devices share one scale, so that heights compare; a limit far above it is text only.
    Bytes highest = 1;
    for (int other = 0; other < scene.devices; ++other)
        highest = std::max(highest, scene.peakOf(other));
    const bool limitFits = limit > 0 && limit <= 3 * highest;
    const double top = 1.06 * static_cast<double>(limitFits ? std::max(limit, highest) : highest);

    svg.fill(area, theme.panel, 2);
    const Timeline& predicted = scene.prediction.timeline;
    const Nanoseconds predictedEnd = endOf(predicted);
    if (index < predicted.memory.size()) {
        svg.filledPath(stepPath(scene, predicted.memory[index], area, top, predictedEnd, true), theme.accent, 0.22);
        const double persistent =
            static_cast<double>(scene.prediction.program.devices[index].persistentBytes) / top * area.height;
        if (persistent >= 1)
            svg.fill({area.x, area.bottom() - persistent, scene.scale.x(predictedEnd) - area.x, persistent},
                     theme.persistent, 0, 0.8);
        svg.strokedPath(stepPath(scene, predicted.memory[index], area, top, predictedEnd, false), theme.accent, 1.3);
    }
    if (scene.options.measured && index < scene.options.measured->memory.size())
        svg.strokedPath(
            stepPath(scene, scene.options.measured->memory[index], area, top, endOf(*scene.options.measured), false),
            theme.text, 1);
    if (limitFits) {
        const double y = area.bottom() - static_cast<double>(limit) / top * area.height;
        svg.line(area.x, y, area.right(), y, theme.bad, 1, "4 3");
    }
    if (scene.memoryHeight < 40) {
        svg.text(16, rowTop + scene.memoryHeight / 2 + 4, fmt::format("device {}", device),
                 {scene.memoryHeight < 20 ? 9.0 : 11.0, theme.dim});
        return;
    }
    svg.text(16, rowTop + 22, fmt::format("Device {}", device), {12, theme.text});
    const Bytes peak = scene.peakOf(device);
    svg.text(16, rowTop + 37, formatSize(peak) + (limit > 0 ? " / " + formatSize(limit) : ""),
             {11, limit > 0 && peak > limit ? theme.bad : theme.dim, true});
}

void drawFooter(const Scene& scene, SvgWriter& svg)
{
    const PictureTheme& theme = scene.theme;
    const double top = scene.footerTop();
    svg.fill({0, top, scene.width(), footerHeight}, theme.panel);
    svg.line(0, top + 0.5, scene.width(), top + 0.5, theme.hairline);
    const Metrics metrics =
        scene.options.measured ? measure(scene.prediction.program, *scene.options.measured) : scene.prediction.metrics;

    double x = 16;
    const double baseline = top + 24;
    const auto add = [&](std::string_view name, const std::string& value) {
        svg.text(x, baseline, name, {11, theme.dim});
        x += 6.9 * static_cast<double>(name.size()) + 5;
        svg.text(x, baseline, value, {11, theme.text, true});
        x += 6.8 * static_cast<double>(value.size()) + 22;
    };
    std::string makespan = formatDuration(metrics.makespan);
    if (scene.options.measured) {
        const Nanoseconds measured = endOf(*scene.options.measured);
        const Nanoseconds predicted = scene.prediction.metrics.makespan;
        const double error =
            measured > 0 ? 100.0 * static_cast<double>(predicted - measured) / static_cast<double>(measured) : 0;
        makespan = fmt::format("{} measured, {} predicted ({:+.1f} %)", formatDuration(measured),
                               formatDuration(predicted), error);
    }
    add("makespan", makespan);
    add("bubble", fmt::format("{:.1f} % (span {:.1f} %)", 100 * metrics.rateMakespan, 100 * metrics.rateSpan));
    int fullest = 0;
    Bytes peak = 0;
    double activations = 0;
    for (std::size_t device = 0; device < scene.prediction.program.devices.size(); ++device) {
        const Program::Device& each = scene.prediction.program.devices[device];
        if (each.peakBytes > peak) {
            peak = each.peakBytes;
            fullest = static_cast<int>(device);
        }
        activations = std::max(activations, each.peakActivations);
    }
    add("peak", peak > 0 ? fmt::format("{} on device {}", formatSize(peak), fullest)
                         : fmt::format("{:.3g} microbatches", activations));
    std::string source = "costs " + scene.design.costs.source;
    if (!scene.options.measuredSource.empty())
        source = scene.options.measuredSource + ", " + source;
    source += fmt::format(" · {} blocks", scene.prediction.program.computeCount());
    // The source is omitted where the numbers need its space.
    if (x + 6.3 * static_cast<double>(source.size()) < scene.width() - 16)
        svg.text(scene.width() - 16, baseline, source, {11, theme.dim, false, false, Anchor::End});
}

} // namespace

std::string timelineSvg(const Design& design, const Prediction& prediction, const PictureOptions& options)
{
    const Scene scene = makeScene(design, prediction, options);
    SvgWriter svg(scene.width(), scene.height(), design.name.empty() ? "Pipeline schedule" : design.name);
    svg.fill({0, 0, scene.width(), scene.height()}, scene.theme.background);
    drawHeader(scene, svg);
    drawAxis(scene, svg);

    const std::vector<Lane> lanes = lanesOf(prediction.program, scene.shown(), scene.scale, scene.devices);
    const std::vector<Lane> predicted =
        options.measured ? lanesOf(prediction.program, prediction.timeline, scene.scale, scene.devices)
                         : std::vector<Lane>{};
    for (int device = 0; device < scene.devices; ++device) {
        const double top = scene.lanesTop() + device * scene.laneHeight;
        svg.line(0, top + 0.5, scene.width(), top + 0.5, scene.theme.hairline);
        drawLaneLabel(scene, svg, device, top);
        drawLane(scene, svg, lanes[device], top);
        if (options.measured)
            drawPredictedOutlines(scene, svg, predicted[device], top);
    }
    svg.line(0, scene.lanesBottom() + 0.5, scene.width(), scene.lanesBottom() + 0.5, scene.theme.hairline);
    if (scene.memoryHeight > 0) {
        svg.text(16, scene.memoryTop() - 8, "MEMORY", {11, scene.theme.dim, false, true});
        for (int device = 0; device < scene.devices; ++device)
            drawMemory(scene, svg, device, scene.memoryTop() + device * scene.memoryHeight);
    }
    if (scene.hiddenDevices > 0)
        svg.text(16, scene.footerTop() - 12, fmt::format("and {} more devices", scene.hiddenDevices),
                 {11, scene.theme.dim});
    drawFooter(scene, svg);
    return std::move(svg).finish();
}

} // namespace pipewright
