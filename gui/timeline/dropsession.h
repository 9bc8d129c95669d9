// SPDX-License-Identifier: GPL-3.0-or-later
// The drop that a drag would make now: planned while hovering, shown in the lanes, committed or refused on release.
#pragma once

#include "gui/timeline/dropplanner.h"
#include "gui/timeline/timelinepainter.h"

#include <QObject>
#include <QPoint>

namespace pipewright {

class BlockSelection;
class ShownSchedule;
class TimelineMap;

class DropSession : public QObject {
    Q_OBJECT

public:
    DropSession(Document& document, ShownSchedule& shown, const TimelineMap& map, const BlockSelection& selection);

    const DropPlan* plan() const { return m_plan ? &*m_plan : nullptr; } ///< null: nothing is held over a place
    bool isArriving() const { return m_isArriving; } ///< dropped; the edited design is being computed
    const Prediction* prediction() const;            ///< null where dropping is illegal
    const Design& design() const;                    ///< that of prediction(); the present one where no stage moves
    const std::vector<LaneHeader>& headers() const { return m_headers; } ///< of design(); empty: unchanged

    /// What dropping a block there would do. Alt: no snapping; Shift: exchange with the block there; Ctrl: the rest of
    /// the microbatch moves too.
    void hold(const Block& block, QPoint position, Qt::KeyboardModifiers modifiers);
    void holdOrder(const Block& block, ReorderDevice order);
    void holdTransfer(const Transfer& transfer, const MoveTransfer& move, const QString& title);
    void holdCollective(const MoveCollective& move, const QString& title);
    void holdGather(const MoveGather& move, int device, const QString& title);
    void holdPaste(const PastePattern& paste, const QString& title);
    void clear() { set(std::nullopt); }
    void commit();
    void scheduleChanged();
    void abandon(); ///< the dropped edit was refused
    void setLargeFrom(double milliseconds) { m_planner.setLargeFrom(milliseconds); }

Q_SIGNALS:
    void previewChanged(); ///< prediction() did, or whether something is held
    void changed();        ///< anything did
    void refused(const Diagnostics& diagnostics, const EditRequest& request);

private:
    int laneFor(const Block& block, int y) const;
    void set(std::optional<DropPlan> next);
    void show(bool confirmed);

    Document& m_document;
    ShownSchedule& m_shown;
    const TimelineMap& m_map;
    const BlockSelection& m_selection;
    DropPlanner m_planner;
    std::optional<DropPlan> m_plan;
    std::vector<LaneHeader> m_headers;
    bool m_isArriving = false;
};

} // namespace pipewright
