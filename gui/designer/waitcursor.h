// SPDX-License-Identifier: GPL-3.0-or-later
// Shows the wait cursor during long work.
#pragma once

#include <QApplication>

namespace pipewright {

class WaitCursor {
public:
    WaitCursor() { QApplication::setOverrideCursor(Qt::WaitCursor); }
    ~WaitCursor() { QApplication::restoreOverrideCursor(); }
    WaitCursor(const WaitCursor&) = delete;
    WaitCursor& operator=(const WaitCursor&) = delete;
};

} // namespace pipewright
