// SPDX-License-Identifier: GPL-3.0-or-later
// Qt ends the process with abort() when it cannot reach a screen: a DISPLAY that is set but dead, a platform
// that is not installed. While a ScreenCheck lives, that end becomes a message that says what was tried and
// what to do, and exit code 2 as for every wrong input.
#pragma once

namespace pipewright {

class ScreenCheck {
public:
    ScreenCheck();  ///< create before the QApplication …
    ~ScreenCheck(); ///< … and let go once it stands
    ScreenCheck(const ScreenCheck&) = delete;
    ScreenCheck& operator=(const ScreenCheck&) = delete;
};

} // namespace pipewright
