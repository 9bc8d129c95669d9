// SPDX-License-Identifier: GPL-3.0-or-later
// What a timeline does by keyboard. Every drag has a twin here, and every key is an action with a text, so that a list
// of shortcuts can be made from the actions themselves.
#include "core/schedule/edits.h"
#include "gui/timeline/timelineparts.h"
#include "gui/timeline/timelineview.h"

#include <QAction>
#include <QMenu>

#include <algorithm>
#include <cmath>
#include <functional>

namespace pipewright {
namespace {

QString actionText(const char* text)
{
    return QCoreApplication::translate("TimelineView", text);
}

/// Of the cursor, or of the middle of the plot while it is elsewhere.
int cursorX(const TimelineView& view)
{
    const QPoint at = view.viewport()->mapFromGlobal(QCursor::pos());
    return view.viewport()->rect().contains(at) ? at.x() : TimelineView::plotLeft() + view.plotWidth() / 2;
}

/// Adds actions that the view's keys reach while it has the focus.
class ActionAdder {
public:
    explicit ActionAdder(TimelineView& view) : m_view(view) {}
    /// `name` may be null where it is not looked up by name.
    template<typename Run>
    QAction* operator()(const char* name, const char* text, const QList<QKeySequence>& keys, Run run) const
    {
        auto* action = new QAction(actionText(text), &m_view);
        action->setObjectName(QLatin1String(name));
        action->setShortcuts(keys);
        action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
        QObject::connect(action, &QAction::triggered, &m_view, run);
        m_view.addAction(action);
        return action;
    }
    template<typename Run>
    void operator()(const char* name, const char* text, const QList<QKeySequence>& keys, const char* tip, Run run) const
    {
        (*this)(name, text, keys, run)->setToolTip(actionText(tip));
    }
    /// A switch; `run` takes whether it is on.
    template<typename Run>
    void toggle(const char* name, const char* text, const QList<QKeySequence>& keys, const char* tip, Run run) const
    {
        QAction* action = (*this)(name, text, keys, run);
        action->setCheckable(true);
        if (*tip)
            action->setToolTip(actionText(tip));
    }

private:
    TimelineView& m_view;
};

void addMovements(const ActionAdder& add, TimelineView& view, TimelineParts& d)
{
    TimelineView* const v = &view;
    TimelineParts* const parts = &d;
    const auto anchor = [v] { return cursorX(*v); };
    const auto pan = [parts](double share) { parts->scroll.panBy(share * parts->map.axis().width); };
    const auto scroll = [parts](int lanes) { parts->scroll.scrollLanes(lanes * parts->lanes.places().pitch()); };
    add(nullptr, "Zoom in", {Qt::Key_W, Qt::Key_Plus}, [v, anchor] { v->zoomBy(1.25, anchor()); });
    add(nullptr, "Zoom out", {Qt::Key_S, Qt::Key_Minus}, [v, anchor] { v->zoomBy(0.8, anchor()); });
    add(nullptr, "Earlier", {Qt::Key_A, Qt::Key_Left}, [pan] { pan(-0.1); });
    add(nullptr, "Later", {Qt::Key_D, Qt::Key_Right}, [pan] { pan(0.1); });
    add(nullptr, "Lanes above", {Qt::Key_Up}, [scroll] { scroll(-1); });
    add(nullptr, "Lanes below", {Qt::Key_Down}, [scroll] { scroll(1); });
    add("frame", "Frame the selection, then everything", {Qt::Key_F}, [v] { v->frameSelection(); });
    add("showAll", "Whole schedule", {Qt::Key_Home, Qt::Key_0}, [v] { v->showAll(); });
}

void addSelections(const ActionAdder& add, TimelineView& view)
{
    TimelineView* const v = &view;
    using Alike = TimelineView::Alike;
    add(nullptr, "Previous block", {Qt::Key_Comma}, [v] { v->selectNeighbour(-1); });
    add(nullptr, "Next block", {Qt::Key_Period}, [v] { v->selectNeighbour(1); });
    add("addPrevious", "Add the previous block to the selection", {Qt::Key_Less},
        [v] { v->selectNeighbourToo(-1, true); });
    add("addNext", "Add the next block to the selection", {Qt::Key_Greater}, [v] { v->selectNeighbourToo(1, true); });
    const char* const keepsOthers = "The other selected blocks stay selected: so any two can be chosen by key";
    add(nullptr, "Previous block in place of the last selected one", {Qt::CTRL | Qt::Key_Comma}, keepsOthers,
        [v] { v->selectNeighbourToo(-1, false); });
    add(nullptr, "Next block in place of the last selected one", {Qt::CTRL | Qt::Key_Period}, keepsOthers,
        [v] { v->selectNeighbourToo(1, false); });
    add(nullptr, "The block this one waited for", {Qt::Key_BracketLeft}, [v] { v->followDependency(-1); });
    add(nullptr, "The first block that waits for this one", {Qt::Key_BracketRight}, [v] { v->followDependency(1); });
    add("explain", "Explain the idle time before the block", {Qt::Key_E}, [v] { v->explainIdleBefore(); });
    add("selectAll", "Select every block", {QKeySequence::SelectAll}, [v] { v->selectAll(); });
    add("alikeMicrobatch", "Select the blocks of this microbatch", {Qt::SHIFT | Qt::Key_M},
        [v] { v->selectAlike(Alike::Microbatch); });
    add("alikeStage", "Select the blocks of this stage", {Qt::SHIFT | Qt::Key_S},
        [v] { v->selectAlike(Alike::Stage); });
    add("alikeOp", "Select the blocks of this operation and stage", {Qt::SHIFT | Qt::Key_O},
        [v] { v->selectAlike(Alike::Op); });
}

void addEdits(const ActionAdder& add, TimelineEdits& edits, PatternPaste& paste)
{
    TimelineEdits* const e = &edits;
    PatternPaste* const p = &paste;
    add("earlier", "Move block one place earlier", {Qt::ALT | Qt::Key_Left}, [e] { e->moveBy(-1); });
    add("later", "Move block one place later", {Qt::ALT | Qt::Key_Right}, [e] { e->moveBy(1); });
    const char* const ripples =
        "Moves the block past one neighbour, and what follows from it on the other devices (later forwards of the same "
        "microbatch, then its backwards) past as many of theirs, or as far as they can go. When dragging: hold Ctrl";
    add("rippleEarlier", "Ripple: block earlier, the rest of its microbatch along",
        {Qt::ALT | Qt::SHIFT | Qt::Key_Left}, ripples, [e] { e->rippleBy(-1); });
    add("rippleLater", "Ripple: block later, the rest of its microbatch along", {Qt::ALT | Qt::SHIFT | Qt::Key_Right},
        ripples, [e] { e->rippleBy(1); });
    add("pin", "Pin the block where it starts, or unpin it", {Qt::SHIFT | Qt::Key_P}, [e] { e->togglePin(); });
    add("stageUp", "Move stage to the device above", {Qt::ALT | Qt::Key_Up}, [e] { e->moveStageBy(-1); });
    add("stageDown", "Move stage to the device below", {Qt::ALT | Qt::Key_Down}, [e] { e->moveStageBy(1); });
    add("unplace", "Return block to the tray", {Qt::Key_Delete, Qt::Key_Backspace}, [e] { e->unplace(); });
    add("exchange", "Exchange the two selected blocks", {Qt::SHIFT | Qt::Key_X}, [e] { e->exchangeTwo(); });
    add("copyOrder", "Copy the order of the selected blocks", {QKeySequence::Copy},
        "Of one device: its warm-up, for example, to be pasted on others", [p] { p->copy(); });
    add("pasteOrder", "Paste the copied order", {QKeySequence::Paste},
        "On the devices of the selected blocks, or on the chosen lane: the same operations and microbatches of its own "
        "stages, in the copied order",
        [p] { p->paste(); });
    add("split", "Split the backward into its halves", {Qt::Key_B}, [e] { e->split(); });
    add("merge", "Merge the halves of the backward", {Qt::SHIFT | Qt::Key_B}, [e] { e->merge(); });
    add("warmUpMore", "One forward more in the device's warm-up", {Qt::SHIFT | Qt::Key_Right},
        [e] { e->changeWarmUp(1); });
    add("warmUpFewer", "One forward fewer in the device's warm-up", {Qt::SHIFT | Qt::Key_Left},
        [e] { e->changeWarmUp(-1); });
}

void addMarkings(const ActionAdder& add, TimelineView& view, TimelineParts& d)
{
    const auto mark = [&view, &d](LaneCanvas::Mark mark) {
        return [&view, &d, mark](bool on) {
            d.canvas.show(mark, on);
            view.viewport()->update();
        };
    };
    add.toggle(nullptr, "Mark the critical path", {Qt::Key_C}, "", mark(LaneCanvas::Mark::Critical));
    add.toggle("before", "Outline the state before the last edit", {Qt::Key_G},
               "Dashed, where the blocks were; always while something is being dragged",
               mark(LaneCanvas::Mark::Before));
    add.toggle(nullptr, "Shade blocks by slack", {Qt::Key_X}, "", mark(LaneCanvas::Mark::Slack));
    add.toggle("heat", "Heat by error of the overlaid run", {Qt::SHIFT | Qt::Key_H}, "", mark(LaneCanvas::Mark::Heat));
    add.toggle("stretch", "Stretch the prediction to the overlaid run", {Qt::SHIFT | Qt::Key_L},
               "Draws the predicted outlines as long as the measured step, to compare shapes where all of it is slower",
               [&view, &d](bool on) {
                   d.shown.stretchOutlines(on);
                   view.viewport()->update();
               });
}

void addReadings(const ActionAdder& add, TimelineView& view, TimelineParts& d)
{
    TimelineView* const v = &view;
    TimelineParts* const parts = &d;
    add.toggle(nullptr, "Crosshair with the values under the cursor", {Qt::Key_H}, "",
               [parts](bool on) { parts->overlay.showCrosshair(on); });
    add(nullptr, "Set or remove a mark at the cursor", {Qt::Key_M}, [v] {
        const double time = v->axis().timeAt(cursorX(*v));
        v->toggleMark(static_cast<Nanoseconds>(std::llround(std::clamp(time, 0.0, static_cast<double>(v->total())))));
    });
    add("measure", "Measure the selection, or the visible range", {Qt::Key_R},
        "Or the explained idle time, or from mark to mark; again: no range", [v] { v->measure(); });
    add("measureByNumbers", "Measure a range by numbers", {Qt::SHIFT | Qt::Key_R},
        "Goes to the fields of its ends in the inspector", [v] { v->measureByNumbers(); });
    QAction* frameRange = add("frameRange", "Show the measured range alone", {Qt::SHIFT | Qt::Key_F},
                              [v] { v->showRange(v->range()->first, v->range()->second); });
    frameRange->setEnabled(false);
    QObject::connect(v, &TimelineView::rangeChanged, frameRange,
                     [v, frameRange] { frameRange->setEnabled(v->range().has_value()); });
    add("menu", "Menu of what was chosen last", {Qt::SHIFT | Qt::Key_F10},
        "Of a block, a transfer (U), explained idle time (E), a lane (Shift+Up, Shift+Down), or the ruler with its "
        "range and marks; the menu key does the same",
        [parts] { parts->menus.showOfChosen(); });
    add("cancel", "Cancel the drag, or clear the selection", {Qt::Key_Escape}, [v] { v->cancel(); });
}

void addLanes(const ActionAdder& add, TimelineView& view, TimelineParts& d)
{
    Lanes* const lanes = &d.lanes;
    // What is done with the lane of the keys, if there is one.
    const auto withLane = [lanes](std::function<void(LaneStrip & strip, int lane)> change) {
        return [lanes, change = std::move(change)] {
            if (const int lane = lanes->forKeys(); lane >= 0)
                lanes->change([&](LaneStrip& strip) { change(strip, lane); });
        };
    };
    const auto choose = [&view, &d](int rows) {
        return [&view, &d, rows] {
            const int lane = d.lanes.neighbour(rows);
            if (lane < 0)
                return;
            d.lanes.choose(lane);
            d.scroll.ensureLaneVisible(lane);
            Q_EMIT view.hovered(view.nameOfLane(lane));
        };
    };
    add("chooseLaneAbove", "Choose the lane above", {Qt::SHIFT | Qt::Key_Up}, choose(-1));
    add("chooseLaneBelow", "Choose the lane below", {Qt::SHIFT | Qt::Key_Down}, choose(1));
    constexpr int step = 10;
    using S = LaneStrip;
    add.toggle("lanePin", "Pin the lane to the top", {Qt::Key_P}, "",
               withLane([](S& strip, int lane) { strip.setPinned(lane, !strip.isPinned(lane)); }));
    add.toggle("laneFold", "Fold the lane", {Qt::Key_L}, "",
               withLane([](S& strip, int lane) { strip.setFolded(lane, !strip.isFolded(lane)); }));
    add("laneUp", "Lane one row up", {Qt::CTRL | Qt::Key_Up},
        withLane([](S& strip, int lane) { strip.move(lane, strip.rowOf(lane) - 1); }));
    add("laneDown", "Lane one row down", {Qt::CTRL | Qt::Key_Down},
        withLane([](S& strip, int lane) { strip.move(lane, strip.rowOf(lane) + 1); }));
    add("laneHigher", "Lane higher", {Qt::CTRL | Qt::SHIFT | Qt::Key_Down},
        withLane([](S& strip, int lane) { strip.setHeight(lane, strip.height(lane) + step); }));
    add("laneLower", "Lane lower", {Qt::CTRL | Qt::SHIFT | Qt::Key_Up},
        withLane([](S& strip, int lane) { strip.setHeight(lane, strip.height(lane) - step); }));
    add("lanesHigher", "All lanes higher", {Qt::CTRL | Qt::SHIFT | Qt::Key_PageDown},
        withLane([](S& strip, int lane) { strip.setHeightOfAll(strip.height(lane) + step); }));
    add("lanesLower", "All lanes lower", {Qt::CTRL | Qt::SHIFT | Qt::Key_PageUp},
        withLane([](S& strip, int lane) { strip.setHeightOfAll(strip.height(lane) - step); }));
    add("lanesReset", "Lanes as they were", {Qt::CTRL | Qt::SHIFT | Qt::Key_Home},
        withLane([](S& strip, int) { strip.reset(); }));
}

void addSubLanes(const ActionAdder& add, TimelineView& view, TimelineParts& d)
{
    TimelineView* const v = &view;
    TimelineParts* const parts = &d;
    TimelineEdits* const e = &d.edits;
    using Shows = bool (LaneStrip::*)(int) const;
    using Set = void (LaneStrip::*)(int, bool);
    const auto toggleAll = [parts](Shows shows, Set set) {
        parts->lanes.change([&](LaneStrip& strip) {
            bool all = true;
            for (int lane = 0; lane < strip.lanes(); ++lane)
                all = all && (strip.*shows)(lane);
            for (int lane = 0; lane < strip.lanes(); ++lane)
                (strip.*set)(lane, !all);
        });
    };
    add("laneTransfers", "Show the lane's transfers", {Qt::Key_Y},
        "Below its blocks, what the device sends and receives, in order", [parts] {
            if (const int lane = parts->lanes.forKeys(); lane >= 0)
                parts->lanes.change(
                    [lane](LaneStrip& strip) { strip.setTransfers(lane, strip.transferHeight(lane) == 0); });
        });
    add("allTransfers", "Show the transfers of all lanes", {Qt::SHIFT | Qt::Key_Y},
        "Or hide them all, when they are shown",
        [toggleAll] { toggleAll(&LaneStrip::showsTransfers, &LaneStrip::setTransfers); });
    add("transferNext", "Next transfer of the block", {Qt::Key_U},
        "What carries its result, in the list of its sender and then of its receiver",
        [v] { v->selectNextTransfer(); });
    const char* const inOrder = "In the order in which its device issues sends and receives";
    add("transferEarlier", "Transfer one place earlier", {Qt::CTRL | Qt::Key_Left}, inOrder,
        [e] { e->moveTransferBy(-1); });
    add("transferLater", "Transfer one place later", {Qt::CTRL | Qt::Key_Right}, inOrder,
        [e] { e->moveTransferBy(1); });
    const char* const ofMembers = "Of the group's members that send it; in their rows a collective is dragged";
    add("transferBeforeCollective", "Transfer before the collective in front of it",
        {Qt::CTRL | Qt::SHIFT | Qt::Key_Left}, ofMembers, [e] { e->moveCollectivePast(true); });
    add("transferBehindCollective", "Transfer behind the next collective", {Qt::CTRL | Qt::SHIFT | Qt::Key_Right},
        ofMembers, [e] { e->moveCollectivePast(false); });
    add("transferFree", "Transfer where its data puts it", {Qt::CTRL | Qt::Key_Backspace},
        "Forgets what was stated about its order", [e] { e->freeTransfer(); });

    const auto sayIfNone = [v, parts] {
        if (!parts->kernels.kernels())
            Q_EMIT v->editRefused(
                actionText("No kernels to show: they are recorded by runs on GPUs, and shown of a step that ran"));
    };
    add("laneKernels", "Show the lane's kernels", {Qt::Key_K}, "Below its measured blocks, what the GPU ran for them",
        [parts, sayIfNone] {
            const int lane = parts->lanes.forKeys();
            if (lane < 0)
                return;
            if (!parts->lanes.strip().showsKernels(lane))
                sayIfNone();
            parts->lanes.change([lane](LaneStrip& strip) { strip.setKernels(lane, !strip.showsKernels(lane)); });
        });
    add("allKernels", "Show the kernels of all lanes", {Qt::SHIFT | Qt::Key_K}, "Or hide them all, when they are shown",
        [toggleAll, sayIfNone, parts] {
            toggleAll(&LaneStrip::showsKernels, &LaneStrip::setKernels);
            if (parts->lanes.strip().lanes() > 0 && parts->lanes.strip().showsKernels(0))
                sayIfNone();
        });
    add("laneMembers", "Unfold the lane into its members", {Qt::Key_J},
        "Below a group's blocks, what each of its devices does of them, and waits for", [v, parts] {
            if (const int lane = parts->lanes.forKeys(); lane >= 0)
                v->showMembers(lane, parts->lanes.strip().members(lane) == 0);
        });
    add("allMembers", "Unfold all groups into their members", {Qt::SHIFT | Qt::Key_J},
        "Or fold them all, when they are unfolded", [v, parts] {
            bool any = false, all = true;
            for (int lane = 0; lane < parts->lanes.strip().lanes(); ++lane)
                if (parts->members.membersOf(lane) > 0) {
                    any = true;
                    all = all && parts->lanes.strip().members(lane) > 0;
                }
            if (!any)
                return Q_EMIT v->editRefused(actionText("No device is a group: see Shard a stage over devices"));
            for (int lane = 0; lane < parts->lanes.strip().lanes(); ++lane)
                if (parts->members.membersOf(lane) > 0)
                    v->showMembers(lane, !all);
        });
}

void addDebugging(TimelineView& view, TimelineParts& d)
{
    if (!FrameMeter::isDebugging())
        return;
    auto* debug = new QAction(actionText("Debug"), &view);
    debug->setMenu(new QMenu(&view));
    QAction* shown = debug->menu()->addAction(actionText("Frame times"));
    shown->setCheckable(true);
    shown->setChecked(true);
    d.frames.isOn = true;
    QObject::connect(shown, &QAction::toggled, &view, [&d](bool on) {
        d.frames.isOn = on;
        d.overlay.setFrameTime({});
    });
    view.addAction(debug);
}

} // namespace

void addTimelineActions(TimelineView& view, TimelineParts& parts)
{
    const ActionAdder add(view);
    addMovements(add, view, parts);
    addSelections(add, view);
    addEdits(add, parts.edits, parts.paste);
    addMarkings(add, view, parts);
    addReadings(add, view, parts);
    addLanes(add, view, parts);
    addSubLanes(add, view, parts);
    addDebugging(view, parts);
}

} // namespace pipewright
