// SPDX-License-Identifier: GPL-3.0-or-later
// What the controllers of a window share (DesignFiles, Overlays, DesignRuns), and how they tell what failed.
#pragma once

#include "gui/document/document.h"
#include "gui/widgets/words.h"

#include <QSettings>

#include <functional>

namespace pipewright {

struct Desk {
    Document& document;
    QSettings& settings;
    QWidget* window; ///< that questions and dialogs stand over; null: none
    std::function<void(const QString& title, const QString& text)> complain;

    /// False when the work throws; `title` and the reason are told then.
    template<typename Work>
    bool attempt(const QString& title, Work work) const
    try {
        work();
        return true;
    } catch (const std::exception& error) {
        complain(title, proseText(error));
        return false;
    }
};

} // namespace pipewright
