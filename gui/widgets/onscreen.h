// SPDX-License-Identifier: GPL-3.0-or-later
// Opens a window in the wanted size, reduced where the window with its frame would not fit the screen.
#pragma once

#include <QScreen>
#include <QWidget>

namespace pipewright {

inline void resizeOnScreen(QWidget& window, QSize wanted)
{
    constexpr int frame = 40;
    window.resize(wanted.boundedTo(window.screen()->availableSize() - QSize(frame / 4, frame)));
}

} // namespace pipewright
