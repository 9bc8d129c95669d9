// SPDX-License-Identifier: GPL-3.0-or-later
// The layout of a timeline picture, top to bottom: header, time axis, one band per schedule (lanes, then memory),
// numbers. Lengths are for a font of 11 pixels; SVG scales them to the requested font. The parts are drawn by
// picturelanes, picturememory and picturewords.
#pragma once

#include "core/exchange/laneblocks.h"
#include "core/exchange/picturetheme.h"
#include "core/exchange/timelinepicture.h"

namespace pipewright {

/// The lanes of one timeline: of a prediction or of a measurement, perhaps with the prediction as outlines.
struct PictureView {
    const PicturePanel* panel = nullptr;
    bool measured = false; ///< which side is filled
    bool outlined = false; ///< the prediction is drawn around it
    TimeScale scale;

    const Timeline& shown() const { return measured ? *panel->measured : panel->prediction->timeline; }
    const Program& program() const { return panel->prediction->program; }
};

/// One schedule, or one side of it; two views where the sides stand beside each other.
struct PictureBand {
    std::vector<PictureView> views;
    int devices = 0, hiddenDevices = 0;
    double headingTop = 0, headingHeight = 0;
    double lanesTop = 0, laneHeight = 0;    ///< laneHeight: of each device
    double memoryTop = 0, memoryHeight = 0; ///< 0: no memory
    double bottom = 0;

    double lanesBottom() const { return lanesTop + devices * laneHeight; }
    double memoryBottom() const { return memoryTop + devices * memoryHeight; }
    const PicturePanel& panel() const { return *views.front().panel; }
};

/// A sign of the legend and its words.
struct LegendEntry {
    enum class Sign { Operation, Reduction, SecondStage, Idle, Predicted, Slower, Limit };
    Sign sign = Sign::Operation;
    std::string text = {};
    Op op = Op::F;
    double x = 0, top = 0;
};

struct PictureScene {
    const PictureOptions& options;
    const PictureTheme& theme;
    bool grey = false;
    bool compact = false; ///< one line per device at the left, and no numbers there
    bool single = false;  ///< only one view: the picture's heading is its name and numbers
    double width = 0, height = 0;
    double left = 0, right = 0; ///< start of the first column's time axis, end of the last one's
    double margin = 0;
    double axisTop = 0;   ///< what reaches from the axis' labels down begins here
    double footerTop = 0; ///< 0: none
    double footerHeight = 0;
    std::vector<PictureBand> bands = {};
    std::vector<LegendEntry> legend = {};

    Bytes limitOf(const PictureView& view, int device) const;
};

/// Throws as drawPicture() does.
PictureScene makePictureScene(const std::vector<PicturePanel>& panels, const PictureOptions& options);

/// End of the last task that ran.
Nanoseconds endOf(const Timeline& timeline);
/// Width of words in this size: an upper estimate for the usual fonts.
double widthOf(std::string_view words, double size, bool mono = false, bool bold = false);

/// Index of the task's stage among the stages of its device, from 0; stages of replicas follow those of the first.
int chunkOf(const Program& program, const Task& task);

} // namespace pipewright
