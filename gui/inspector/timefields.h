// SPDX-License-Identifier: GPL-3.0-or-later
// Fields of the timeline's visible range, which dragging also changes, and of the range measured on the ruler, if any.
// Their edits are not undo steps.
#pragma once

#include "core/base/diagnostic.h"
#include "core/base/units.h"

#include <QWidget>

#include <optional>

namespace pipewright {

class TimeField;
class TimelineView;

class TimeFields : public QWidget {
    Q_OBJECT

public:
    explicit TimeFields(TimelineView& timeline, QWidget* parent = nullptr);

    void editRange(); ///< focuses the field of the measured range's start

Q_SIGNALS:
    /// The result of an entry: no diagnostics when accepted or reverted.
    void checked(const pipewright::Diagnostics& faults);

private:
    void refreshVisible();
    void refreshRange();
    void showBetween(std::optional<Nanoseconds> from, std::optional<Nanoseconds> to);
    void measureBetween(std::optional<Nanoseconds> from, std::optional<Nanoseconds> to);

    TimelineView& m_timeline;
    TimeField *m_visibleFrom, *m_visibleTo;
    TimeField *m_from, *m_to, *m_length; ///< of the range
    QWidget* m_range;                    ///< the rows shown only for a measured range
};

} // namespace pipewright
