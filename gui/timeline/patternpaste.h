// SPDX-License-Identifier: GPL-3.0-or-later
// Copies the order of some blocks of a device, and pastes it on other devices (core/schedule/pattern.h): a warm-up, for
// example. The copy is on the system's clipboard, as names of blocks for other programs.
#pragma once

#include "core/predict/editrequest.h"

#include <QCoreApplication>
#include <QString>

#include <optional>

class QMenu;

namespace pipewright {

class TimelineView;
struct TimelineParts;

class PatternPaste {
    Q_DECLARE_TR_FUNCTIONS(TimelineView)

public:
    PatternPaste(TimelineView& view, TimelineParts& parts) : m_view(view), d(parts) {}

    void copy(); ///< the selected blocks; refused when they are of several devices
    /// Onto the lane that was chosen, or else the devices of the selected blocks; one undo step, or it says why not.
    void paste();
    void previewIn(QMenu& menu); ///< while the menu's entry for it is under the cursor, the lanes show the result

private:
    std::optional<PastePattern> request(QString* whyNot) const;
    QString titleOf(const PastePattern& paste) const; ///< "order of 4 blocks on GPU 1; GPU 3 lacks W of microbatch 3"
    void preview();
    void endPreview();

    TimelineView& m_view;
    TimelineParts& d;
    bool m_previews = false;
};

} // namespace pipewright
