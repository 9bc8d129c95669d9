// SPDX-License-Identifier: GPL-3.0-or-later
// What TimelineView does by keyboard and wheel. Every drag has a twin here, and every key is an action with
// a text, so that a list of shortcuts can be made from the actions themselves.
#include "core/schedule/edits.h"
#include "gui/timeline/dependencies.h"
#include "gui/timeline/timelinetext.h"
#include "gui/timeline/timelineviewprivate.h"
#include "gui/widgets/wheelstep.h"

#include <QAction>
#include <QHelpEvent>
#include <QMenu>
#include <QScrollBar>
#include <QToolTip>

namespace pipewright {

void TimelineView::Private::addActions()
{
    TimelineView* v = &view;
    const auto add = [v](const QString& text, const QList<QKeySequence>& keys, auto run) {
        auto* action = new QAction(text, v);
        action->setShortcuts(keys);
        action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
        QObject::connect(action, &QAction::triggered, v, run);
        v->addAction(action);
        return action;
    };
    const auto anchor = [v] {
        const QPoint at = v->viewport()->mapFromGlobal(QCursor::pos());
        return v->viewport()->rect().contains(at) ? at.x() : plotLeft() + v->m_axis.width / 2;
    };
    const auto pan = [this](double share) { setAxis(panned(view.m_axis, share * view.m_axis.width)); };
    const auto scroll = [v, this](int lanes) {
        v->verticalScrollBar()->setValue(v->verticalScrollBar()->value() + lanes * places.pitch());
    };
    add(tr("Zoom in"), {Qt::Key_W, Qt::Key_Plus}, [v, anchor] { v->zoomBy(1.25, anchor()); });
    add(tr("Zoom out"), {Qt::Key_S, Qt::Key_Minus}, [v, anchor] { v->zoomBy(0.8, anchor()); });
    add(tr("Earlier"), {Qt::Key_A, Qt::Key_Left}, [pan] { pan(-0.1); });
    add(tr("Later"), {Qt::Key_D, Qt::Key_Right}, [pan] { pan(0.1); });
    add(tr("Lanes above"), {Qt::Key_Up}, [scroll] { scroll(-1); });
    add(tr("Lanes below"), {Qt::Key_Down}, [scroll] { scroll(1); });
    add(tr("Frame the selection, then everything"), {Qt::Key_F}, [v] {
        v->frameSelection();
    })->setObjectName(QStringLiteral("frame"));
    add(tr("Whole schedule"), {Qt::Key_Home, Qt::Key_0}, [v] {
        v->showAll();
    })->setObjectName(QStringLiteral("showAll"));
    add(tr("Previous block"), {Qt::Key_Comma}, [v] { v->selectNeighbour(-1); });
    add(tr("Next block"), {Qt::Key_Period}, [v] { v->selectNeighbour(1); });
    add(tr("Add the previous block to the selection"), {Qt::Key_Less}, [v] {
        v->selectNeighbourToo(-1, true);
    })->setObjectName(QStringLiteral("addPrevious"));
    add(tr("Add the next block to the selection"), {Qt::Key_Greater}, [v] {
        v->selectNeighbourToo(1, true);
    })->setObjectName(QStringLiteral("addNext"));
    for (const auto& [key, direction] : {std::pair(Qt::Key_Comma, -1), std::pair(Qt::Key_Period, 1)})
        add(direction < 0 ? tr("Previous block in place of the last selected one")
                          : tr("Next block in place of the last selected one"),
            {Qt::CTRL | key}, [v, direction = direction] { v->selectNeighbourToo(direction, false); })
            ->setToolTip(tr("The other selected blocks stay selected: so any two can be chosen by key"));
    add(tr("The block this one waited for"), {Qt::Key_BracketLeft}, [v] { v->followDependency(-1); });
    add(tr("The first block that waits for this one"), {Qt::Key_BracketRight}, [v] { v->followDependency(1); });
    add(tr("Explain the idle time before the block"), {Qt::Key_E}, [v] {
        v->explainIdleBefore();
    })->setObjectName(QStringLiteral("explain"));
    add(tr("Move block one place earlier"), {Qt::ALT | Qt::Key_Left}, [v] {
        v->moveSelection(-1);
    })->setObjectName(QStringLiteral("earlier"));
    add(tr("Move block one place later"), {Qt::ALT | Qt::Key_Right}, [v] {
        v->moveSelection(1);
    })->setObjectName(QStringLiteral("later"));
    add(tr("Ripple: block earlier, the rest of its microbatch along"), {Qt::ALT | Qt::SHIFT | Qt::Key_Left}, [v] {
        v->rippleSelection(-1);
    })->setObjectName(QStringLiteral("rippleEarlier"));
    add(tr("Ripple: block later, the rest of its microbatch along"), {Qt::ALT | Qt::SHIFT | Qt::Key_Right}, [v] {
        v->rippleSelection(1);
    })->setObjectName(QStringLiteral("rippleLater"));
    for (const char* name : {"rippleEarlier", "rippleLater"})
        v->action(QLatin1String(name))
            ->setToolTip(tr("Moves the block past one neighbour, and what follows from it on the other devices (later "
                            "forwards of the same "
                            "microbatch, then its backwards) past as many of theirs, or as far as they can go. When "
                            "dragging: hold Ctrl"));
    add(tr("Pin the block where it starts, or unpin it"), {Qt::SHIFT | Qt::Key_P}, [v] {
        v->togglePin();
    })->setObjectName(QStringLiteral("pin"));
    add(tr("Select every block"), {QKeySequence::SelectAll}, [v] {
        v->selectAll();
    })->setObjectName(QStringLiteral("selectAll"));
    add(tr("Move stage to the device above"), {Qt::ALT | Qt::Key_Up}, [v] {
        v->moveStageBy(-1);
    })->setObjectName(QStringLiteral("stageUp"));
    add(tr("Move stage to the device below"), {Qt::ALT | Qt::Key_Down}, [v] {
        v->moveStageBy(1);
    })->setObjectName(QStringLiteral("stageDown"));
    add(tr("Return block to the tray"), {Qt::Key_Delete, Qt::Key_Backspace}, [v] {
        v->unplaceSelection();
    })->setObjectName(QStringLiteral("unplace"));
    add(tr("Select the blocks of this microbatch"), {Qt::SHIFT | Qt::Key_M}, [v] {
        v->selectAlike(Alike::Microbatch);
    })->setObjectName(QStringLiteral("alikeMicrobatch"));
    add(tr("Select the blocks of this stage"), {Qt::SHIFT | Qt::Key_S}, [v] {
        v->selectAlike(Alike::Stage);
    })->setObjectName(QStringLiteral("alikeStage"));
    add(tr("Select the blocks of this operation and stage"), {Qt::SHIFT | Qt::Key_O}, [v] {
        v->selectAlike(Alike::Op);
    })->setObjectName(QStringLiteral("alikeOp"));
    add(tr("Exchange the two selected blocks"), {Qt::SHIFT | Qt::Key_X}, [v] {
        v->exchangeSelection();
    })->setObjectName(QStringLiteral("exchange"));
    add(tr("Split the backward into its halves"), {Qt::Key_B}, [v] {
        v->splitSelection();
    })->setObjectName(QStringLiteral("split"));
    add(tr("Merge the halves of the backward"), {Qt::SHIFT | Qt::Key_B}, [v] {
        v->mergeSelection();
    })->setObjectName(QStringLiteral("merge"));
    add(tr("One forward more in the device's warm-up"), {Qt::SHIFT | Qt::Key_Right}, [v] {
        v->changeWarmUp(1);
    })->setObjectName(QStringLiteral("warmUpMore"));
    add(tr("One forward fewer in the device's warm-up"), {Qt::SHIFT | Qt::Key_Left}, [v] {
        v->changeWarmUp(-1);
    })->setObjectName(QStringLiteral("warmUpFewer"));
    QAction* critical = add(tr("Mark the critical path"), {Qt::Key_C}, [this](bool on) {
        showCritical = on;
        reload();
    });
    critical->setCheckable(true);
    QAction* ghost = add(tr("Outline the state before the last edit"), {Qt::Key_G}, [this](bool on) {
        showBefore = on;
        view.viewport()->update();
    });
    ghost->setCheckable(true);
    ghost->setObjectName(QStringLiteral("before"));
    ghost->setToolTip(tr("Dashed, where the blocks were; always while something is being dragged"));
    QAction* bySlack = add(tr("Shade blocks by slack"), {Qt::Key_X}, [this](bool on) {
        showSlack = on;
        view.viewport()->update();
    });
    bySlack->setCheckable(true);
    QAction* heat = add(tr("Heat by error of the overlaid run"), {Qt::SHIFT | Qt::Key_H}, [this](bool on) {
        showHeat = on;
        view.viewport()->update();
    });
    heat->setCheckable(true);
    heat->setObjectName(QStringLiteral("heat"));
    QAction* stretch = add(tr("Stretch the prediction to the overlaid run"), {Qt::SHIFT | Qt::Key_L}, [this](bool on) {
        stretchOutlines = on;
        alignOutlines();
        view.viewport()->update();
    });
    stretch->setCheckable(true);
    stretch->setObjectName(QStringLiteral("stretch"));
    stretch->setToolTip(
        tr("Draws the predicted outlines as long as the measured step, to compare shapes where all of it is slower"));
    QAction* crosshair = add(tr("Crosshair with the values under the cursor"), {Qt::Key_H}, [this, v](bool on) {
        showCrosshair = on;
        cursor = v->viewport()->mapFromGlobal(QCursor::pos());
        hovering = v->viewport()->rect().contains(cursor);
        updateOverlay();
    });
    crosshair->setCheckable(true);
    add(tr("Set or remove a mark at the cursor"), {Qt::Key_M}, [this, v, anchor] {
        v->toggleMark(static_cast<Nanoseconds>(
            std::llround(std::clamp(v->m_axis.timeAt(anchor()), 0.0, static_cast<double>(total())))));
    });
    QAction* measure = add(tr("Measure the selection, or what is in sight"), {Qt::Key_R}, [v] { v->measure(); });
    measure->setObjectName(QStringLiteral("measure"));
    measure->setToolTip(tr("Or the explained idle time, or from mark to mark; again: no range"));
    QAction* numbers = add(tr("Measure a range by numbers"), {Qt::SHIFT | Qt::Key_R}, [v] { v->measureByNumbers(); });
    numbers->setObjectName(QStringLiteral("measureByNumbers"));
    numbers->setToolTip(tr("Goes to the fields of its ends in the inspector"));
    QAction* frameRange = add(tr("Show the measured range alone"), {Qt::SHIFT | Qt::Key_F},
                              [v, this] { v->showRange(readings.range()->first, readings.range()->second); });
    frameRange->setObjectName(QStringLiteral("frameRange"));
    frameRange->setEnabled(false);
    QObject::connect(v, &TimelineView::rangeChanged, frameRange,
                     [this, frameRange] { frameRange->setEnabled(readings.range().has_value()); });
    QAction* menu = add(tr("Menu of what was chosen last"), {Qt::SHIFT | Qt::Key_F10}, [this] { showMenuOfChosen(); });
    menu->setObjectName(QStringLiteral("menu"));
    menu->setToolTip(tr("Of a block, a transfer (U), explained idle time (E), a lane (Shift+Up, Shift+Down), or the "
                        "ruler with its range and marks; the menu key does the same"));
    add(tr("Cancel the drag, or clear the selection"), {Qt::Key_Escape}, [v] {
        v->cancel();
    })->setObjectName(QStringLiteral("cancel"));
    if (!FrameMeter::isDebugging())
        return;
    auto* debug = new QAction(tr("Debug"), v);
    debug->setMenu(new QMenu(v));
    QAction* shown = debug->menu()->addAction(tr("Frame times"));
    shown->setCheckable(true);
    shown->setChecked(true);
    frames.isOn = true;
    QObject::connect(shown, &QAction::toggled, v, [this](bool on) {
        frames.isOn = on;
        OverlayContent content = overlay->content();
        content.frameTime.clear();
        overlay->setContent(std::move(content));
    });
    v->addAction(debug);
}

void TimelineView::Private::exchangeHalves(bool split)
{
    const std::optional<Block> held = document.selection();
    if (!held)
        return;
    const EditRequest request =
        split ? EditRequest(SplitBackwards{view.selectedBlocks()}) : EditRequest(MergeBackwards{view.selectedBlocks()});
    const Diagnostics faults = document.apply(request);
    refuse(faults, request);
    if (hasErrors(faults))
        return;
    const Op op = split ? Op::I : Op::B;
    const bool isPart = isBackward(held->op);
    if (const Block now{op, held->stage, held->microbatch, held->replica}; isPart && layout().find(now))
        document.select(now);
}

void TimelineView::splitSelection()
{
    d->exchangeHalves(true);
}

void TimelineView::mergeSelection()
{
    d->exchangeHalves(false);
}

void TimelineView::wheelEvent(QWheelEvent* event)
{
    const WheelStep step = wheelStep(*event, d->places.pitch());
    event->accept();
    if (step.zoom != 1)
        zoomBy(step.zoom, event->position().x());
    else if (step.pan != 0)
        d->setAxis(panned(m_axis, step.pan));
    else
        verticalScrollBar()->setValue(verticalScrollBar()->value() - step.scroll);
}

bool TimelineView::viewportEvent(QEvent* event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const QString text = d->movingBlock() ? QString() : d->toolTipAt(help->pos());
        if (text.isEmpty())
            QToolTip::hideText();
        else
            QToolTip::showText(help->globalPos(), text, viewport());
        return true;
    }
    if (event->type() == QEvent::Leave) {
        d->hovering = false;
        if (d->showCrosshair)
            d->updateOverlay();
        Q_EMIT hovered(QString());
    }
    return QAbstractScrollArea::viewportEvent(event);
}

QString TimelineView::Private::toolTipAt(QPoint position) const
{
    if (const std::optional<Block> block = view.blockAt(position))
        return view.describe(*block);
    if (const std::optional<std::size_t> chip = chipAt(position))
        return transferLanes.text(places.transfersAt(position), *chip, transferTimes()).toHtmlEscaped();
    if (const QString kernel = kernelTextAt(position); !kernel.isEmpty())
        return kernel.toHtmlEscaped();
    if (const QString member = memberTextAt(position); !member.isEmpty())
        return member.toHtmlEscaped();
    const int lane = places.at(position.y());
    return lane >= 0 && position.x() < plotLeft() ? laneDescription(document.design(), lane).toHtmlEscaped()
                                                  : QString();
}

bool TimelineView::event(QEvent* event)
{
    // While a block hangs at the cursor, Alt switches snapping and Ctrl rippling; the plan follows without a mouse
    // move.
    if ((event->type() == QEvent::KeyPress || event->type() == QEvent::KeyRelease) && d->gesture) {
        const auto* key = static_cast<QKeyEvent*>(event);
        for (const auto& [held, modifier] :
             {std::pair(Qt::Key_Alt, Qt::AltModifier), {Qt::Key_Control, Qt::ControlModifier}}) {
            if (key->key() != held)
                continue;
            if (d->gesture->changeModifiers(event->type() == QEvent::KeyPress ? Qt::KeyboardModifiers(modifier)
                                                                              : Qt::NoModifier))
                return true;
        }
    }
    return QAbstractScrollArea::event(event);
}

void TimelineView::changeEvent(QEvent* event)
{
    QAbstractScrollArea::changeEvent(event);
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange)
        viewport()->update();
}

// ---- Selection by keyboard ------------------------------------------------------------------------

std::optional<Block> TimelineView::Private::neighbour(int direction) const
{
    const TimelineLayout& layout = shown();
    const std::optional<TimelineLayout::Place> place =
        document.selection() ? layout.find(*document.selection()) : std::nullopt;
    if (place) {
        const std::vector<LaneBlock>& blocks = layout.lanes()[place->device].blocks();
        const auto index = static_cast<std::ptrdiff_t>(place->index) + direction;
        if (index >= 0 && index < static_cast<std::ptrdiff_t>(blocks.size()))
            return blocks[index].block;
        return std::nullopt;
    }
    // Without a selection the first visible block begins.
    for (const Lane& lane : layout.lanes()) {
        const std::size_t first = lane.firstEndingAfter(std::max(0.0, view.m_axis.start));
        if (first < lane.blocks().size())
            return lane.blocks()[first].block;
    }
    return std::nullopt;
}

void TimelineView::selectNeighbour(int direction)
{
    const std::optional<Block> next = d->neighbour(direction);
    if (!next)
        return;
    d->document.select(next);
    ensureVisible(*next);
}

void TimelineView::selectNeighbourToo(int direction, bool also)
{
    const std::optional<Block> next = d->neighbour(direction), last = d->document.selection();
    if (!next || d->held())
        return;
    std::vector<Block> blocks = selectedBlocks();
    if (last && !also)
        std::erase(blocks, *last);
    std::erase(blocks, *next);
    blocks.insert(blocks.begin(), *next);
    d->group = {blocks.begin(), blocks.end()}; // which the new selection is of, and so they stay
    d->document.select(next);
    selectBlocks(blocks);
    ensureVisible(*next);
}

void TimelineView::followDependency(int direction)
{
    const std::optional<Block> selected = d->document.selection();
    const TimelineLayout& layout = d->shown();
    if (!selected || !layout.find(*selected))
        return;
    const Dependencies dependencies = dependenciesOf(d->document.design(), layout, *selected);
    const std::optional<Block> next =
        direction < 0 ? lastInput(dependencies, layout) : firstOutput(dependencies, layout);
    if (!next)
        return;
    d->document.select(next);
    ensureVisible(*next);
}

void TimelineView::explainIdleBefore()
{
    const TimelineLayout& layout = d->shown();
    const std::optional<TimelineLayout::Place> place =
        d->document.selection() ? layout.find(*d->document.selection()) : std::nullopt;
    if (!place)
        return;
    const std::vector<LaneBlock>& blocks = layout.lanes()[place->device].blocks();
    const Nanoseconds start = place->index > 0 ? blocks[place->index - 1].end : 0;
    const Nanoseconds end = blocks[place->index].start;
    if (end > start)
        Q_EMIT gapClicked(place->device, start, end);
    else
        Q_EMIT editRefused(tr("Nothing is idle before this block"));
}

// ---- Edits by keyboard ----------------------------------------------------------------------------

void TimelineView::togglePin()
{
    const std::optional<Block> selected = d->document.selection();
    const LaneBlock* block = selected ? d->layout().blockOf(*selected) : nullptr;
    if (!block || d->held())
        return;
    const std::vector<Pin>& pins = d->document.design().schedule.pins;
    const bool isPinned = std::any_of(pins.begin(), pins.end(), [&](const Pin& pin) { return pin.block == *selected; });
    if (!isPinned && block->runsFrom() == 0) {
        Q_EMIT editRefused(tr("%1 starts at 0: a pin would say nothing").arg(blockText(*selected)));
        return;
    }
    d->applyOrRefuse(PinBlock{*selected, isPinned ? 0 : block->runsFrom()});
}

void TimelineView::unplaceSelection()
{
    const std::vector<Block> blocks = selectedBlocks();
    if (blocks.empty() || d->held() || pipewright::find(d->document.design().schedule, blocks.front()).device < 0)
        return;
    d->applyOrRefuse(UnplaceBlocks{blocks});
}

} // namespace pipewright
