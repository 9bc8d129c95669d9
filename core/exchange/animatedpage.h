// SPDX-License-Identifier: GPL-3.0-or-later
// A step as an animation: one HTML page without other files that shows a picture up to a moving time, with a button, a
// slider and the time in words. A veil covers the part after that time, so the picture is drawn only once.
#pragma once

#include "core/exchange/timelinepicture.h"

#include <string>

namespace pipewright {

/// `seconds`: duration of the animation. Throws Error unless that is between 0.1 and 3600.
std::string animatedPage(const Picture& picture, double seconds);

} // namespace pipewright
