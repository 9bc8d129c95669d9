// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/framemeter.h"

#include <QLoggingCategory>

#include <algorithm>
#include <utility>

namespace pipewright {
namespace {

Q_LOGGING_CATEGORY(frameTime, "pipewright.timeline.frametime", QtInfoMsg)

} // namespace

bool FrameMeter::isDebugging()
{
    return frameTime().isDebugEnabled();
}

std::optional<double> FrameMeter::add(double milliseconds)
{
    m_worst = std::max(m_worst, milliseconds);
    if (m_clock.isValid() && m_clock.elapsed() < 500)
        return std::nullopt;
    qCDebug(frameTime, "worst paint %.2f ms", m_worst);
    m_clock.start();
    return std::exchange(m_worst, 0);
}

} // namespace pipewright
