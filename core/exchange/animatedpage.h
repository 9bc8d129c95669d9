// SPDX-License-Identifier: GPL-3.0-or-later
// A step as an animation: an HTML page that needs nothing beside itself and shows a picture up to a time that moves,
// with a button, a slider and the time in words. The part after that time is covered by a veil, so the picture is drawn
// once.
#pragma once

#include "core/exchange/timelinepicture.h"

#include <string>

namespace pipewright {

/// `seconds`: how long the step takes to look at. Throws Error unless that is between 0.1 and 3600.
std::string animatedPage(const Picture& picture, double seconds);

} // namespace pipewright
