// SPDX-License-Identifier: GPL-3.0-or-later
// Fields of time: from when to when the timeline shows, the numeric twin of dragging in it or in the overview, and,
// while there is one, the range that is measured on the ruler: its ends and its length. Nothing of it is an undo step.
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

Q_SIGNALS:
    /// What was entered is taken or taken back (no diagnostics), or says why not.
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
