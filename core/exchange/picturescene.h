// SPDX-License-Identifier: GPL-3.0-or-later
// Where everything of a timeline picture stands, top to bottom: header, time axis, one band per schedule (lanes, then
// memory), numbers. Lengths are those of a picture whose font has 11 pixels; SVG scales them to the font that was asked
// for. The parts are drawn by picturelanes, picturememory and picturewords.
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
    double lanesTop = 0, laneHeight = 0;    ///< the height is of each device
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
    bool single = false;  ///< one view: its name and numbers are the picture's
    double width = 0, height = 0;
    double left = 0, right = 0; ///< where time begins and ends, of the outer columns
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
/// Of words in this size, on the safe side of what fonts need.
double widthOf(std::string_view words, double size, bool mono = false, bool bold = false);

/// Which of its device's stages this is, counted from 0; replicas are further ones.
int chunkOf(const Program& program, const Task& task);

} // namespace pipewright
