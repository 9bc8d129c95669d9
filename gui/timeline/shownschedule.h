// SPDX-License-Identifier: GPL-3.0-or-later
// The layouts that the lanes can show, and which of them they show now: the present prediction, a recorded step or
// both, and while something is dragged the preview of it. The one place to ask which blocks are in a lane, and when.
#pragma once

#include "gui/document/document.h"
#include "gui/document/timelinelayout.h"

namespace pipewright {

class ShownSchedule {
public:
    explicit ShownSchedule(const Document& document) : m_document(document) {}

    const TimelineLayout& layout() const; ///< what the lanes show now
    /// Of the Document's prediction, which may be made on another thread; empty at first.
    const TimelineLayout& present() const { return *m_present; }
    const TimelineLayout* before() const { return m_before.get(); } ///< the last edit; null: nothing was
    const TimelineLayout* measured() const { return m_measured ? &*m_measured : nullptr; }
    /// The prediction as it is drawn over the recording, so that both begin with their first task; null without one.
    const TimelineLayout* outlines() const { return m_outlines ? &*m_outlines : nullptr; }
    const TimelineLayout* preview() const { return m_preview.get(); } ///< null: none
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
    void reloadOverlay(); ///< the recording did, or which side is shown. O(tasks)
    void forgetBefore() { m_before.reset(); }
    void stretchOutlines(bool on); ///< to the length of the measured step. O(tasks)
    void setPlanning(bool on) { m_isPlanning = on; }
    void setPreview(std::shared_ptr<const TimelineLayout> layout) { m_preview = std::move(layout); }
    /// A preview that shows the present tasks at other times, see TimelineLayout::retime(). The copy is kept for the
    /// next preview.
    void previewRetimed(const Prediction& prediction, int device, std::span<const std::uint32_t> positions,
                        TaskId changed);

private:
    void align();

    const Document& m_document;
    std::shared_ptr<const TimelineLayout> m_present = std::make_shared<const TimelineLayout>();
    std::shared_ptr<const TimelineLayout> m_before;
    std::optional<TimelineLayout> m_measured, m_outlines;
    std::shared_ptr<const TimelineLayout> m_preview;
    std::shared_ptr<TimelineLayout> m_retimed; ///< a copy of m_present with the times of the current drag
    bool m_isPlanning = false, m_isStretched = false;
};

} // namespace pipewright
