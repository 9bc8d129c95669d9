// SPDX-License-Identifier: GPL-3.0-or-later
// The longest paint time of each half second, for debugging: QT_LOGGING_RULES="pipewright.timeline.frametime=true" logs
// and shows it, and adds a menu entry to switch that off and on.
#pragma once

#include <QElapsedTimer>

#include <optional>

namespace pipewright {

class FrameMeter {
public:
    static bool isDebugging(); ///< the logging category is on
    bool isOn = false;
    /// The longest time, in milliseconds; none unless half a second has passed since the last result.
    std::optional<double> add(double milliseconds);

private:
    QElapsedTimer m_clock;
    double m_worst = 0;
};

} // namespace pipewright
