// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/picturelanes.h"

#include <algorithm>
#include <array>
#include <vector>

namespace pipewright {

namespace {

constexpr double narrowestDecorated = 5; // pixels: with corners, texture and label
constexpr double palerChunk = 0.58;      // opacity of every second stage of a device
constexpr double digitWidth = 6.7;
constexpr double secondStageBar = 2.5; // pixels: the bar that marks such a stage without colours

/// Forms of a block's label, from the longest to none.
enum class LabelForm { Stacked, InLine, Letter, None };

// Width of an operation's bold letter in the widest of the usual fonts.
double letterWidth(Op op)
{
    return op == Op::W ? 13 : 9.5;
}

struct LabelSizes {
    double digits = 1; // digits of the longest number in the lane
    double bandHeight = 0;

    double widthOf(LabelForm form, Op op) const
    {
        switch (form) {
        case LabelForm::Stacked: return std::max(letterWidth(op) + 1, digitWidth * digits + 3);
        case LabelForm::InLine: return letterWidth(op) + digitWidth * digits + 3;
        case LabelForm::Letter: return letterWidth(op) + 1;
        case LabelForm::None: return 0;
        }
        return 0;
    }
    bool fits(LabelForm form, Op op, double width) const
    {
        const double height = form == LabelForm::Stacked ? 27 : form == LabelForm::None ? 0 : 11;
        return bandHeight >= height && width >= widthOf(form, op);
    }
};

using LaneForms = std::array<LabelForm, opCount>;

// The longest form that an operation's block of median width has room for: measured blocks vary, predicted ones do not.
LaneForms formsOf(const LaneShapes& lane, const LabelSizes& sizes)
{
    std::array<std::vector<double>, opCount> widths;
    for (const LaneShape& shape : lane.shapes)
        if (shape.task != none && !shape.isReduction())
            widths[shape.colour].push_back(shape.to - shape.from);
    LaneForms forms;
    forms.fill(LabelForm::None);
    for (std::size_t op = 0; op < widths.size(); ++op) {
        if (widths[op].empty())
            continue;
        const auto median = widths[op].begin() + static_cast<std::ptrdiff_t>((widths[op].size() - 1) / 2);
        std::nth_element(widths[op].begin(), median, widths[op].end());
        for (const LabelForm form : {LabelForm::Stacked, LabelForm::InLine, LabelForm::Letter})
            if (sizes.fits(form, static_cast<Op>(op), *median)) {
                forms[op] = form;
                break;
            }
    }
    return forms;
}

LabelSizes sizesOf(const PictureView& view, const LaneShapes& lane, double bandHeight)
{
    int highest = 0;
    for (const LaneShape& shape : lane.shapes)
        if (shape.task != none && !shape.isReduction())
            highest = std::max(highest, view.program().tasks[shape.task].microbatch());
    return {static_cast<double>(std::to_string(highest).size()), bandHeight};
}

// Upright rows of squares; where only one row fits, it is in the middle of the area.
std::string denseDots(const Rectangle& area)
{
    constexpr double spacing = 3.6, size = 1.5;
    std::string data;
    const int columns = std::max(1, static_cast<int>(area.width / spacing));
    const double first = area.x + (area.width - spacing * (columns - 1) - size) / 2;
    for (int column = 0; column < columns; ++column)
        for (double y = area.y + 1 + (column % 2) * spacing / 2; y + size < area.bottom(); y += spacing)
            appendRectangle(data, {first + spacing * column, y, size, size});
    return data;
}

// Lines from side to side or top to bottom.
std::string stripes(const Rectangle& area, double spacing, bool upright)
{
    std::string data;
    const double from = upright ? area.x : area.y, to = upright ? area.right() : area.bottom();
    for (double at = from + spacing / 2; at < to; at += spacing)
        appendRectangle(data,
                        upright ? Rectangle{at, area.y, 0.8, area.height} : Rectangle{area.x, at, area.width, 0.8});
    return data;
}

// Without colours only the texture identifies the operation: a plain plate keeps it out from behind the label.
void drawPlate(const PictureScene& scene, SvgWriter& svg, const Rectangle& area, Op op)
{
    if (scene.grey && op != Op::F)
        svg.fill(area, scene.theme.background, 2);
}

void drawLabel(const PictureScene& scene, SvgWriter& svg, const Rectangle& area, const Task& task, Op op,
               LabelForm form)
{
    const std::string number = isUpdate(task.kind) ? std::string() : std::to_string(task.microbatch());
    if (number.empty() && form != LabelForm::None)
        form = LabelForm::Letter;
    const double middle = area.x + area.width / 2, centre = area.y + area.height / 2;
    const std::string name(1, letter(op));
    const TextStyle bold{12, scene.theme.ink, false, true, Anchor::Middle};
    switch (form) {
    case LabelForm::Stacked: {
        const double wide = std::max(letterWidth(op) - 1, digitWidth * static_cast<double>(number.size()) + 1);
        drawPlate(scene, svg, {middle - wide / 2, centre - 13, wide, 26}, op);
        svg.text(middle, centre - 2.5, name, bold);
        svg.text(middle, centre + 11, number, {11, scene.theme.ink, true, false, Anchor::Middle});
        return;
    }
    case LabelForm::InLine: {
        const double wide = letterWidth(op) + digitWidth * static_cast<double>(number.size());
        drawPlate(scene, svg, {middle - wide / 2 - 1, centre - 6, wide + 2, 12}, op);
        svg.text(middle - wide / 2, centre + 4.2, name, {11, scene.theme.ink, false, true});
        svg.text(middle + wide / 2, centre + 4.2, number, {11, scene.theme.ink, true, false, Anchor::End});
        return;
    }
    case LabelForm::Letter:
        drawPlate(scene, svg, {middle - letterWidth(op) / 2, centre - 6, letterWidth(op), 12}, op);
        svg.text(middle, centre + 4, name, {11, scene.theme.ink, false, true, Anchor::Middle});
        return;
    case LabelForm::None: return;
    }
}

bool isSlower(const PictureScene& scene, const PictureView& view, TaskId task)
{
    if (!view.measured)
        return false;
    const Timeline& predicted = view.panel->prediction->timeline;
    const Timeline& measured = *view.panel->measured;
    const double expected = static_cast<double>(predicted.end[task] - predicted.start[task]);
    const double took = static_cast<double>(measured.end[task] - measured.start[task]);
    return took > expected * (1 + scene.options.spread);
}

double insetOf(const PictureBand& band)
{
    return band.laneHeight >= 40 ? 7 : band.laneHeight >= 20 ? 2.5 : band.laneHeight >= 12 ? 1.5 : 1;
}

void drawLane(const PictureScene& scene, SvgWriter& svg, const PictureBand& band, const PictureView& view,
              const LaneShapes& lane, double top)
{
    const double inset = insetOf(band);
    const Rectangle ground{0, top + inset, 0, band.laneHeight - 2 * inset};
    for (const auto& [from, to] : lane.idle)
        drawIdle(scene, svg, {from + 1, ground.y + 2, to - from - 2, ground.height - 4});
    const LabelSizes sizes = sizesOf(view, lane, ground.height);
    const LaneForms forms = formsOf(lane, sizes);
    // Blocks too narrow for corners, texture and label are one path per colour.
    std::string plain[opCount + 1], slower;
    for (const LaneShape& shape : lane.shapes) {
        // A thin gap of background separates equal neighbours.
        const double width = std::max(shape.to - shape.from, 0.5);
        const double gap = shape.task == none ? 0 : width >= 5 ? 0.5 : width >= 3 ? 0.25 : 0;
        const Rectangle area{shape.from + gap, ground.y, width - 2 * gap, ground.height};
        if (shape.task == none || width < narrowestDecorated) {
            appendRectangle(plain[shape.colour], area);
        } else {
            const Task& task = view.program().tasks[shape.task];
            const double radius = std::min(scene.compact ? 2.0 : 3.0, width / 4);
            const bool second = !shape.isReduction() && chunkOf(view.program(), task) % 2 == 1;
            svg.fill(area, scene.theme.colourOf(shape.colour), radius, second && !scene.grey ? palerChunk : 1);
            if (!shape.isReduction())
                drawTexture(scene, svg, area, shape.op());
            if (scene.grey)
                svg.outline(area, scene.theme.ink, 0.6, radius);
            if (second && scene.grey)
                svg.fill({area.x, area.y, area.width, secondStageBar}, scene.theme.ink);
            if (!shape.isReduction())
                if (const LabelForm form = forms[indexOf(shape.op())]; sizes.fits(form, shape.op(), width))
                    drawLabel(scene, svg, area, task, shape.op(), form);
        }
        if (shape.task != none && isSlower(scene, view, shape.task))
            appendRectangle(slower, {area.x, area.bottom() - 3, area.width, 3});
    }
    for (std::size_t i = 0; i + 1 < lane.shapes.size(); ++i)
        if (const double width = lane.shapes[i + 1].to - lane.shapes[i].from; lane.shapes[i].joined && width >= 8)
            svg.outline({lane.shapes[i].from + 0.5, ground.y - 1.5, width - 1, ground.height + 3}, scene.theme.text, 1,
                        3);
    for (int colour = 0; colour <= opCount; ++colour)
        svg.filledPath(plain[colour], scene.grey ? greyOfNarrowBlocks[colour] : scene.theme.colourOf(colour));
    svg.filledPath(slower, scene.theme.bad);
}

// Brackets above and below the block, which cross no label.
void drawPredictedOutlines(const PictureScene& scene, SvgWriter& svg, const PictureBand& band, const LaneShapes& lane,
                           double top)
{
    const double inset = insetOf(band), outer = std::max(0.5, inset - 2.5);
    std::string data;
    const auto bracket = [&data](double from, double to, double inside, double outside) {
        appendPoint(data, 'M', from, inside);
        appendPoint(data, 'L', from, outside);
        appendPoint(data, 'L', to, outside);
        appendPoint(data, 'L', to, inside);
    };
    for (const LaneShape& shape : lane.shapes)
        if (shape.task != none && shape.to - shape.from >= 3) {
            bracket(shape.from + 0.5, shape.to - 0.5, top + inset, top + outer);
            bracket(shape.from + 0.5, shape.to - 0.5, top + band.laneHeight - inset, top + band.laneHeight - outer);
        }
    svg.strokedPath(data, scene.grey ? scene.theme.ink : scene.theme.dim, 1, 1, "3 2");
}

} // namespace

void drawTexture(const PictureScene& scene, SvgWriter& svg, const Rectangle& area, Op op)
{
    const Rectangle inner{area.x + 1, area.y + 1, area.width - 2, area.height - 2};
    if (inner.width < (scene.grey ? 2 : 4))
        return;
    // Without colours only textures distinguish operations: they are denser, and every operation but F has one.
    const double strength = scene.grey ? 0.75 : 0;
    const std::string_view ink = scene.theme.ink;
    switch (op) {
    case Op::I: svg.strokedPath(hatch(inner, scene.grey ? 6 : 9, true), ink, 1, std::max(strength, 0.3)); return;
    case Op::B:
        svg.strokedPath(hatch(inner, scene.grey ? 6 : 11, true) + hatch(inner, scene.grey ? 6 : 11, false), ink,
                        scene.grey ? 0.8 : 1, std::max(strength, 0.2));
        return;
    case Op::W:
        svg.filledPath(scene.grey ? denseDots(inner) : dots(inner, 7, 1.6), ink, std::max(strength, 0.33));
        return;
    case Op::R: svg.filledPath(scene.grey ? stripes(inner, 4, false) : std::string(), ink, strength); return;
    case Op::U: svg.filledPath(scene.grey ? stripes(inner, 3, true) : std::string(), ink, strength); return;
    case Op::F: return;
    }
}

void drawIdle(const PictureScene& scene, SvgWriter& svg, const Rectangle& area)
{
    if (!scene.grey) // next to textures of black lines, idle time is white
        svg.strokedPath(hatch(area, 8, false), scene.theme.hairline, 1);
}

void drawLanes(const PictureScene& scene, SvgWriter& svg, const PictureBand& band, const PictureView& view)
{
    const std::vector<LaneShapes> lanes = lanesOf(view.program(), view.shown(), view.scale, band.devices);
    const std::vector<LaneShapes> outlines =
        view.outlined ? lanesOf(view.program(), view.panel->prediction->timeline, view.scale, band.devices)
                      : std::vector<LaneShapes>{};
    for (int device = 0; device < band.devices; ++device) {
        const double top = band.lanesTop + device * band.laneHeight;
        drawLane(scene, svg, band, view, lanes[device], top);
        if (view.outlined)
            drawPredictedOutlines(scene, svg, band, outlines[device], top);
    }
}

} // namespace pipewright
