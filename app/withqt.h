// SPDX-License-Identifier: GPL-3.0-or-later
// What needs Qt. designer.cpp does it; a program without Qt has withoutqt.cpp in its place, and all else is the same.
#pragma once

#include "core/exchange/timelinepicture.h"

#include <string>
#include <vector>

namespace pipewright::app {

extern const bool hasQt;

/// Opens the designer's window. Throws Error without Qt and without a screen.
int openDesigner(int argc, char** argv, const std::vector<std::string>& files);

/// Writes a picture whose name checkPictureName() accepted; without Qt .svg and .html only.
void writeDrawnPicture(const Picture& picture, const std::string& path, bool overwrite, double dotsPerInch,
                       double seconds);

} // namespace pipewright::app
