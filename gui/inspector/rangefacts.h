// SPDX-License-Identifier: GPL-3.0-or-later
// What the devices do in the range measured on the ruler or in the overview: busy share with its operations, idle time
// with its causes, the busiest and the least busy device, and the memory peak. Hidden without a range.
#pragma once

#include "gui/document/document.h"

#include <QWidget>

namespace pipewright {

class FactList;
class Section;
class TimelineView;

class RangeFacts : public QWidget {
    Q_OBJECT

public:
    explicit RangeFacts(TimelineView& timeline, QWidget* parent = nullptr);
    const FactList& facts() const { return *m_facts; }
    QString heading() const; ///< "Range · predicted"

private:
    void refresh();

    TimelineView& m_timeline;
    FactList* m_facts;
    Section* m_section;
};

} // namespace pipewright
