// SPDX-License-Identifier: GPL-3.0-or-later
// What is selected in a timeline. The Document knows the one block that was chosen last; the others are the view's own
// and go when another block is selected elsewhere. A transfer is selected with the block that makes what it carries.
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

    std::vector<Block> blocks() const; ///< by device, in time order; the Document's alone when there is no other
    bool isGroup() const { return !m_group.empty(); }
    bool isInGroup(const Block& block) const { return m_group.contains(block); }
    std::vector<Block> movingWith(const Block& block) const; ///< the group that it is of; else none

    void clear();
    void select(const std::vector<Block>& blocks);
    void selectAll(); ///< that are ordered
    void selectWhere(const std::function<bool(const Block& block)>& wanted);
    void toggle(const Block& block);
    void extendTo(const Block& block); ///< from the Document's, on the same device
    /// Of the Document's on its device: -1 the previous, 1 the next. Without one the first that ends after `time`.
    std::optional<Block> neighbour(int direction, double time) const;
    void alsoSelect(const Block& next, bool keepLast); ///< beside the others, or in place of the Document's

    using OnDevice = std::pair<int, Transfer>; ///< and in whose list it is
    /// The one that was chosen last, or else the first that the selected block sends.
    std::optional<OnDevice> transfer() const;
    /// The next of those that carry the selected block's result, at their senders and at their receivers.
    std::optional<OnDevice> nextTransfer() const;
    void selectTransfer(int device, const Transfer& transfer);

    void documentChanged(); ///< the Document's selection did
    void scheduleChanged(); ///< blocks that are no more are selected no more

Q_SIGNALS:
    void changed();
    void counted(int blocks); ///< when they are several

private:
    Document& m_document;
    const ShownSchedule& m_shown;
    const TransferLanes& m_transfers;
    std::unordered_set<Block, TimelineLayout::Hash> m_group; ///< empty, or at least two with the Document's among them
    std::optional<OnDevice> m_transfer;                      ///< holds while its block is selected
};

} // namespace pipewright
