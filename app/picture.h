// SPDX-License-Identifier: GPL-3.0-or-later
// A design's timeline as a picture file, with the measured one below it when there is a trace.
#pragma once

#include "core/exchange/timelinepicture.h"

#include <string>

namespace pipewright::app {

/// Throws Error when the name ends in neither .svg nor .png, or in .png and this build has no Qt: call it before long
/// work.
void checkPictureName(const std::string& path, bool overwrite);

/// Throws Error when the file exists and `overwrite` is false.
void writePicture(const std::string& path, bool overwrite, const Design& design, const Prediction& prediction,
                  const PictureOptions& options);

/// "run.db, step 3", for the foot of a picture.
std::string measuredSource(const std::string& trace, const std::string& step);

} // namespace pipewright::app
