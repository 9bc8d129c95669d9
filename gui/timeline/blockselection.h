// SPDX-License-Identifier: GPL-3.0-or-later
// The selection of a timeline. The Document stores the block that was selected last. The other selected blocks belong
// to the view and are deselected when another block is selected elsewhere. Selecting a transfer also selects the block
// that produces its data.
#pragma once

#include "core/program/transferorder.h"
#include "gui/document/timelinelayout.h"

#include <QObject>

#include <functional>
#include <optional>
#include <unordered_set>
#include <vector>

namespace pipewright {

class Document;
class ShownSchedule;
class TransferLanes;

class BlockSelection : public QObject {
    Q_OBJECT

public:
    BlockSelection(Document& document, const ShownSchedule& shown, const TransferLanes& transfers);

    std::vector<Block> blocks() const; ///< by device, in time order; without a group the Document's block
    bool isGroup() const { return !m_group.empty(); }
    bool isInGroup(const Block& block) const { return m_group.contains(block); }
    std::vector<Block> movingWith(const Block& block) const; ///< the selected group when `block` is in it; else empty

    void clear();
    void select(const std::vector<Block>& blocks);
    void selectAll(); ///< all blocks of the order
    void selectWhere(const std::function<bool(const Block& block)>& wanted);
    void toggle(const Block& block);
    void extendTo(const Block& block); ///< from the Document's block, on the same device
    /// The neighbour of the Document's block on its device: -1 the previous, 1 the next. Without a selected block, the
    /// first block that ends after `time`.
    std::optional<Block> neighbour(int direction, double time) const;
    void alsoSelect(const Block& next, bool keepLast); ///< adds `next`, or replaces the Document's block by it

    using OnDevice = std::pair<int, Transfer>; ///< the device in whose list the transfer is
    /// The transfer that was selected last, or else the first one that the selected block sends.
    std::optional<OnDevice> transfer() const;
    /// The next transfer of the selected block's result, in the lists of the senders and of the receivers.
    std::optional<OnDevice> nextTransfer() const;
    void selectTransfer(int device, const Transfer& transfer);

    void documentChanged(); ///< the Document's selection changed
    void scheduleChanged(); ///< deselects blocks that no longer exist

Q_SIGNALS:
    void changed();
    void counted(int blocks); ///< when several are selected

private:
    Document& m_document;
    const ShownSchedule& m_shown;
    const TransferLanes& m_transfers;
    std::unordered_set<Block, TimelineLayout::Hash> m_group; ///< empty, or two and more with the Document's block
    std::optional<OnDevice> m_transfer;                      ///< valid while its block is selected
};

} // namespace pipewright
