// SPDX-License-Identifier: GPL-3.0-or-later
// The edits of a timeline by key and menu, which correspond to the drags. For a refused edit a note gives the reason
// and offers a remedy, beside the selection or at the place of the drop.
#pragma once

#include "core/predict/editrequest.h"

#include <QCoreApplication>
#include <QPoint>

#include <optional>
#include <utility>

namespace pipewright {

class BlockSelection;
class Document;
class Lanes;
class MemberLanes;
class RefusalNote;
class ShownSchedule;
class TimelineView;
class TransferLanes;
struct GestureInHand;

class TimelineEdits {
    Q_DECLARE_TR_FUNCTIONS(TimelineView)

public:
    struct Sources {
        Document& document;
        const ShownSchedule& shown;
        const BlockSelection& selection;
        const TransferLanes& transfers;
        const MemberLanes& members;
        const GestureInHand& hand; ///< nothing is edited while a block is held
        Lanes& lanes;
    };
    TimelineEdits(TimelineView& view, Sources sources);

    bool apply(const EditRequest& request); ///< false, and said, when it is refused
    /// `at`: where it was tried; none: at the selected block.
    void refuse(const Diagnostics& diagnostics, const EditRequest& request, std::optional<QPoint> at = {});
    bool hideRefusal(); ///< false: none was shown

    // Edits of the selected block, or of all selected blocks.
    void togglePin();
    void unplace();
    void split();
    void merge();
    void exchangeTwo();
    void exchange(const Block& first, const Block& second);
    void moveBy(int places);
    void rippleBy(int places);
    void moveStageBy(int devices);
    void changeWarmUp(int forwards);
    // Edits of the selected transfer.
    void moveTransferBy(int places);
    void freeTransfer();
    void moveCollectivePast(bool later); ///< the next one of the group's members that is on that side of it

private:
    void exchangeHalves(bool split);
    std::optional<std::pair<int, Transfer>> transferToMove(); ///< none: it said why
    void moveGatherBy(int device, const Transfer& gather, int places);
    bool moveGroup(int places); ///< false when the selection stands alone on its device
    void reorder(const ReorderDevice& order);

    TimelineView& m_view;
    const Sources m;
    RefusalNote* m_refusal;
};

} // namespace pipewright
