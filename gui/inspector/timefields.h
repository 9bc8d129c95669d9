// SPDX-License-Identifier: GPL-3.0-or-later
// Fields of the timeline's visible range, as by dragging in it or in the overview, and of the range measured on the
// ruler, if any. None is an undo step.
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

    void editRange(); ///< the keys go to the start of the measured range

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
    QWidget* m_range;                    ///< the rows that only a range has
};

} // namespace pipewright
