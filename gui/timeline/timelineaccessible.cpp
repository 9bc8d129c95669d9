// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/timelineaccessible.h"

#include "core/schedule/edits.h"
#include "gui/timeline/timelineview.h"

#include <QAccessible>
#include <QAccessibleWidget>

#include <map>
#include <vector>

namespace pipewright {
namespace {

QRect onScreen(const TimelineView& view, const QRect& rect)
{
    const QRect visible = rect.intersected(view.viewport()->rect());
    return {view.viewport()->mapToGlobal(visible.topLeft()), visible.size()};
}

// What lanes and blocks have in common: they are no QObjects, live inside a view and only show.
class Part : public QAccessibleInterface {
public:
    explicit Part(TimelineView& view) : m_view(view) {}
    bool isValid() const override { return true; }
    QObject* object() const override { return nullptr; }
    QWindow* window() const override { return m_view.window()->windowHandle(); }
    void setText(QAccessible::Text, const QString&) override {}

protected:
    TimelineView& m_view;
};

class LeafPart : public Part {
public:
    using Part::Part;
    QAccessibleInterface* child(int) const override { return nullptr; }
    QAccessibleInterface* childAt(int, int) const override { return nullptr; }
    int childCount() const override { return 0; }
    int indexOfChild(const QAccessibleInterface*) const override { return -1; }
    QAccessible::Role role() const override { return QAccessible::ListItem; }
};

class BlockPart : public LeafPart {
public:
    BlockPart(TimelineView& view, const Block& block) : LeafPart(view), m_block(block) {}
    QAccessibleInterface* parent() const override;
    QRect rect() const override { return onScreen(m_view, m_view.rectOfBlock(m_block)); }
    QString text(QAccessible::Text kind) const override
    {
        return kind == QAccessible::Name ? m_view.nameOfBlock(m_block) : QString();
    }
    QAccessible::State state() const override
    {
        QAccessible::State state;
        state.selectable = state.focusable = true;
        state.selected = state.focused = m_view.document().selection() == m_block;
        return state;
    }
    const Block& block() const { return m_block; }

private:
    Block m_block;
};

// A chip in the sub-lane of a device: what it sends or receives.
class TransferPart : public LeafPart {
public:
    TransferPart(TimelineView& view, int device, const Transfer& transfer)
        : LeafPart(view), m_device(device), m_transfer(transfer)
    {
    }
    QAccessibleInterface* parent() const override;
    QRect rect() const override { return onScreen(m_view, m_view.rectOfTransfer(m_device, m_transfer)); }
    QString text(QAccessible::Text kind) const override
    {
        return kind == QAccessible::Name ? m_view.nameOfTransfer(m_device, m_transfer) : QString();
    }
    QAccessible::State state() const override
    {
        int device = -1;
        QAccessible::State state;
        state.selectable = state.focusable = true;
        state.selected = m_view.selectedTransfer(&device) == m_transfer && device == m_device;
        return state;
    }
    const Transfer& transfer() const { return m_transfer; }

private:
    int m_device;
    Transfer m_transfer;
};

// A lane's children are its visible blocks, and behind them the chips of its sub-lane, while that is shown.
class LanePart : public Part {
public:
    LanePart(TimelineView& view, int device) : Part(view), m_device(device) {}
    ~LanePart() override
    {
        for (const auto& [block, id] : m_blocks)
            QAccessible::deleteAccessibleInterface(id);
        for (const auto& [transfer, id] : m_transfers)
            QAccessible::deleteAccessibleInterface(id);
    }
    QAccessibleInterface* parent() const override { return QAccessible::queryAccessibleInterface(&m_view); }
    int childCount() const override
    {
        return static_cast<int>(m_view.visibleBlocks(m_device).size() + m_view.visibleTransfers(m_device).size());
    }
    QAccessibleInterface* child(int index) const override
    {
        if (index < 0)
            return nullptr;
        std::size_t at = index;
        const std::vector<Block> blocks = m_view.visibleBlocks(m_device);
        if (at < blocks.size())
            return of(blocks[at]);
        at -= blocks.size();
        const std::vector<Transfer> transfers = m_view.visibleTransfers(m_device);
        return at < transfers.size() ? of(transfers[at]) : nullptr;
    }
    QAccessibleInterface* childAt(int x, int y) const override
    {
        const QPoint at = m_view.viewport()->mapFromGlobal(QPoint(x, y));
        if (const auto transfer = m_view.transferAt(at))
            return transfer->first == m_device ? of(transfer->second) : nullptr;
        const std::optional<Block> block = m_view.blockAt(at);
        return block ? of(*block) : nullptr;
    }
    int indexOfChild(const QAccessibleInterface* child) const override
    {
        const std::vector<Block> blocks = m_view.visibleBlocks(m_device);
        if (const auto* chip = dynamic_cast<const TransferPart*>(child)) {
            const std::vector<Transfer> transfers = m_view.visibleTransfers(m_device);
            const auto it = std::find(transfers.begin(), transfers.end(), chip->transfer());
            return it == transfers.end() ? -1
                                         : static_cast<int>(blocks.size()) + static_cast<int>(it - transfers.begin());
        }
        const auto* part = dynamic_cast<const BlockPart*>(child);
        const auto it = part ? std::find(blocks.begin(), blocks.end(), part->block()) : blocks.end();
        return it == blocks.end() ? -1 : static_cast<int>(it - blocks.begin());
    }
    QAccessible::Role role() const override { return QAccessible::List; }
    QRect rect() const override { return onScreen(m_view, m_view.rectOfLane(m_device)); }
    QString text(QAccessible::Text kind) const override
    {
        return kind == QAccessible::Name          ? m_view.nameOfLane(m_device)
               : kind == QAccessible::Description ? m_view.numbersOfLane(m_device)
                                                  : QString();
    }
    QAccessible::State state() const override { return {}; }
    QAccessibleInterface* of(const Block& block) const
    {
        const auto [it, isNew] = m_blocks.try_emplace(block, 0);
        if (isNew)
            it->second = QAccessible::registerAccessibleInterface(new BlockPart(m_view, block));
        return QAccessible::accessibleInterface(it->second);
    }
    QAccessibleInterface* of(const Transfer& transfer) const
    {
        const auto [it, isNew] = m_transfers.try_emplace(transfer, 0);
        if (isNew)
            it->second = QAccessible::registerAccessibleInterface(new TransferPart(m_view, m_device, transfer));
        return QAccessible::accessibleInterface(it->second);
    }

private:
    int m_device;
    mutable std::map<Block, QAccessible::Id> m_blocks;
    mutable std::map<Transfer, QAccessible::Id> m_transfers;
};

class TimelinePart : public QAccessibleWidget {
public:
    explicit TimelinePart(TimelineView* view) : QAccessibleWidget(view, QAccessible::List), m_view(*view) {}
    ~TimelinePart() override
    {
        for (const QAccessible::Id id : m_lanes)
            QAccessible::deleteAccessibleInterface(id);
    }
    int childCount() const override { return m_view.laneCount(); }
    QAccessibleInterface* child(int index) const override
    {
        if (index < 0 || index >= m_view.laneCount())
            return nullptr;
        while (std::ssize(m_lanes) <= index)
            m_lanes.push_back(
                QAccessible::registerAccessibleInterface(new LanePart(m_view, static_cast<int>(m_lanes.size()))));
        return QAccessible::accessibleInterface(m_lanes[index]);
    }
    QAccessibleInterface* childAt(int x, int y) const override
    {
        const QPoint at = m_view.viewport()->mapFromGlobal(QPoint(x, y));
        for (int device = 0; device < m_view.laneCount(); ++device) {
            if (m_view.rectOfLane(device).contains(at))
                return child(device);
        }
        return nullptr;
    }
    int indexOfChild(const QAccessibleInterface* part) const override
    {
        for (std::size_t i = 0; i < m_lanes.size(); ++i) {
            if (QAccessible::accessibleInterface(m_lanes[i]) == part)
                return static_cast<int>(i);
        }
        return -1;
    }
    QAccessibleInterface* focusChild() const override
    {
        const std::optional<Block> selected = m_view.document().selection();
        const int device = selected ? find(m_view.document().design().schedule, *selected).device : -1;
        return device < 0 ? nullptr : static_cast<LanePart*>(child(device))->of(*selected);
    }

private:
    TimelineView& m_view;
    mutable std::vector<QAccessible::Id> m_lanes;
};

QAccessibleInterface* BlockPart::parent() const
{
    const int device = find(m_view.document().design().schedule, m_block).device;
    QAccessibleInterface* view = QAccessible::queryAccessibleInterface(&m_view);
    return view && device >= 0 ? view->child(device) : view;
}

QAccessibleInterface* TransferPart::parent() const
{
    QAccessibleInterface* view = QAccessible::queryAccessibleInterface(&m_view);
    return view ? view->child(m_device) : nullptr;
}

QAccessibleInterface* make(const QString&, QObject* object)
{
    auto* view = qobject_cast<TimelineView*>(object);
    return view ? new TimelinePart(view) : nullptr;
}

} // namespace

void installTimelineAccessibility()
{
    QAccessible::installFactory(make); // does nothing when it is installed already
}

void announceSelection(TimelineView& view)
{
    if (!QAccessible::isActive())
        return;
    QAccessibleInterface* interface = QAccessible::queryAccessibleInterface(&view);
    if (QAccessibleInterface* block = interface ? interface->focusChild() : nullptr) {
        QAccessibleEvent event(block, QAccessible::Focus);
        QAccessible::updateAccessibility(&event);
    }
}

} // namespace pipewright
