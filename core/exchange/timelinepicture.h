// SPDX-License-Identifier: GPL-3.0-or-later
// Timelines as an SVG picture, for a screen, a page or a talk: one or several schedules under one another on one time
// axis, each with its lanes, its memory and its numbers, and a legend. This is the only painter of pictures: PNG, PDF,
// animations and reports are made from its output. Blocks narrower than a pixel are merged into runs of the dominant
// colour, so the picture's size is bounded by its pixels, not its blocks. O(blocks log blocks).
#pragma once

#include "core/exchange/svgwriter.h"
#include "core/predict/predict.h"

#include <string>
#include <vector>

namespace pipewright {

/// One schedule of a picture. Refers to what it shows.
struct PicturePanel {
    PicturePanel(const Design& shown, const Prediction& of) : design(&shown), prediction(&of) {}

    const Design* design;
    const Prediction* prediction;
    const Timeline* measured = nullptr; ///< of the same Program
    std::string measuredSource = {};    ///< "run 7"
    std::string title = {};             ///< the design's name when empty
};

enum class PictureColours {
    Light, ///< as the window's
    Dark,
    Paper, ///< on white
    Grey,  ///< on white, distinguished by textures alone: for a black and white print
};

/// Where a measurement stands.
enum class MeasuredPlace {
    Over,   ///< filled, with the prediction as dashed outlines
    Under,  ///< in lanes of its own below the predicted ones
    Beside, ///< in lanes of its own at the right of the predicted ones, on the same scale
    Alone,  ///< without the prediction
};

struct PictureOptions {
    PictureColours colours = PictureColours::Light;
    MeasuredPlace measured = MeasuredPlace::Over;
    double width = 1400;      ///< pixels of 1/96 inch
    bool centimetres = false; ///< the picture states its size in them
    double fontSize = 11;     ///< pixels, of ordinary words; all else is in proportion
    double laneHeight = 0;    ///< pixels; 0: as fits the number of devices
    double spread = 0.05;     ///< measured blocks slower by more than this share are marked by a bar at the bottom
    bool memory = true;       ///< memory curves, where the design knows any bytes
    bool axes = true;         ///< of time and memory
    bool legend = true;
    bool titles = true;
    bool numbers = true; ///< makespan, bubble and peak
};

/// 1 inch, 2.54 cm, in pixels.
inline constexpr double pixelsPerInch = 96;

struct Picture {
    std::string svg;
    double width = 0, height = 0; ///< pixels
    double zoom = 1;              ///< pixels per unit of the SVG's own coordinates
    std::vector<Rectangle> times; ///< what has a time axis, in those units: one for each column
    Nanoseconds end = 0;          ///< of the time axis, which begins at 0
    PictureColours colours = PictureColours::Light;
};

/// Up to 128 devices of a schedule are drawn, and a line says how many more there are. Throws Error when there is no
/// panel, when a measurement is of another Program than its prediction, when the picture is narrower than 24 times its
/// font or wider than 20,000 pixels, or when the font is outside 4 to 100 pixels.
Picture drawPicture(const std::vector<PicturePanel>& panels, const PictureOptions& options = {});

/// The SVG of one panel.
std::string timelineSvg(const PicturePanel& panel, const PictureOptions& options = {});

/// Words of the command line and of the dialog: "light", "over".
std::string_view nameOf(PictureColours colours);
std::string_view nameOf(MeasuredPlace place);
inline constexpr PictureColours allPictureColours[] = {PictureColours::Light, PictureColours::Dark,
                                                       PictureColours::Paper, PictureColours::Grey};
inline constexpr MeasuredPlace allMeasuredPlaces[] = {MeasuredPlace::Over, MeasuredPlace::Under, MeasuredPlace::Beside,
                                                      MeasuredPlace::Alone};

} // namespace pipewright
