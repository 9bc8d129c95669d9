// SPDX-License-Identifier: GPL-3.0-or-later
// The worst paint of each half second, for debugging: QT_LOGGING_RULES="pipewright.timeline.frametime=true" logs and
// shows it, and adds a menu entry to switch that off and on.
#pragma once

#include <QElapsedTimer>

#include <optional>

namespace pipewright {

class FrameMeter {
public:
    static bool isDebugging(); ///< the logging category is on
    bool isOn = false;
    /// The worst time when half a second has gone by since the last answer, in milliseconds.
    std::optional<double> add(double milliseconds);

private:
    QElapsedTimer m_clock;
    double m_worst = 0;
};

} // namespace pipewright
