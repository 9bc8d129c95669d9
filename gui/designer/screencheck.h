// SPDX-License-Identifier: GPL-3.0-or-later
// Qt calls abort() when it cannot open a screen: an unreachable DISPLAY, a missing platform plugin. While a ScreenCheck
// lives, this becomes a message with reason and remedy, and exit code 2 as for other bad input.
#pragma once

namespace pipewright {

class ScreenCheck {
public:
    ScreenCheck();  ///< create before the QApplication …
    ~ScreenCheck(); ///< … and destroy after it
    ScreenCheck(const ScreenCheck&) = delete;
    ScreenCheck& operator=(const ScreenCheck&) = delete;
};

} // namespace pipewright
