// SPDX-License-Identifier: GPL-3.0-or-later
// Timelines as picture files: their looks, from options of the command line, and writing them.
#pragma once

#include "app/command.h"

#include "core/exchange/timelinepicture.h"

#include <string>
#include <vector>

namespace pipewright::app {

/// The looks of a picture, as options of a command.
struct PictureChoice {
    std::string width, fontSize, laneHeight, colours, measured, resolution, duration;
    std::vector<std::string> without;
    bool dark = false;

    void addTo(CLI::App& command);
    /// Throw Error naming the option that cannot be; `path` decides the colours where none are given.
    PictureOptions options(const std::string& path) const;
    double dotsPerInch(const std::string& path) const;
    double seconds(const std::string& path) const;
};

/// "8.5cm", "85mm", "3.3in", "8pt", "1400px" and "1400", in pixels of 1/96 inch. Throws Error (where = `where`).
double parseLength(const std::string& text, const std::string& where);

/// Throws Error when the file name has no extension of a picture format, or one that this build cannot write without
/// Qt. Call it before long work.
void checkPictureName(const std::string& path, bool overwrite);

/// Throws Error when the file exists and `overwrite` is false. The last two are for .png and .html.
void writePicture(const std::string& path, bool overwrite, const Picture& picture, double dotsPerInch = 192,
                  double seconds = 10);

/// "run.db, step 3", for the foot of a picture.
std::string measuredSource(const std::string& trace, const std::string& step);

} // namespace pipewright::app
