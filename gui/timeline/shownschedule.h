// SPDX-License-Identifier: GPL-3.0-or-later
// Which of the layouts the lanes show now: the prediction, a recorded step or both, and while something is dragged the
// preview of it. The one place to ask which blocks are in a lane, and when.
#pragma once

#include "gui/document/document.h"
#include "gui/timeline/shownlayouts.h"

namespace pipewright {

class ShownSchedule {
public:
    explicit ShownSchedule(const Document& document) : m_document(document) {}

    /// Of the Document's prediction, which may be made on another thread.
    const TimelineLayout& present() const { return m_layouts.present(); }
    const TimelineLayout& layout() const; ///< what the lanes show now
    const ShownLayouts& layouts() const { return m_layouts; }
    int lanes() const { return static_cast<int>(present().lanes().size()); }
    /// The side that the lanes show. During a drag it is the predicted side, because drops are planned at predicted
    /// times.
    Side side() const;
    bool showsMeasured() const { return side() != Side::Predicted; }
    bool showsBoth() const { return side() == Side::Both; }
    Nanoseconds total() const; ///< end of what can be shown; a preview does not count
    std::optional<LaneBlock> find(const Block& block, int* device = nullptr) const;
    const Timeline& transferTimes() const; ///< the times of the transfer chips

    void reload();        ///< the design changed; ends previews
    void reloadOverlay(); ///< the recording did, or which side is shown
    void forgetBefore() { m_layouts.forgetBefore(); }
    void stretchOutlines(bool on); ///< to the length of the measured step
    void setPlanning(bool on) { m_isPlanning = on; }
    ShownLayouts& previews() { return m_layouts; } ///< for the drag that makes them

private:
    void align();

    const Document& m_document;
    ShownLayouts m_layouts;
    bool m_isPlanning = false, m_isStretched = false;
};

} // namespace pipewright
