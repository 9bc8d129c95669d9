// SPDX-License-Identifier: GPL-3.0-or-later
// The layouts that lanes can show: the present prediction, the one before the last edit, a recorded step with the
// prediction aligned to it for outlines, and the preview of a drag. Which of them is shown is decided by the
// view (shownschedule.h).
#pragma once

#include "gui/document/timelinelayout.h"

#include <memory>
#include <optional>
#include <span>

namespace pipewright {

class ShownLayouts {
public:
    const TimelineLayout& present() const { return *m_present; } ///< empty at first
    /// The layout of the Document's prediction; the previous one becomes before(). Ends previews.
    void setPresent(std::shared_ptr<const TimelineLayout> layout);
    const TimelineLayout* before() const { return m_before.get(); } ///< null: nothing was
    void forgetBefore() { m_before.reset(); }

    /// A recorded step of the prediction's program. O(tasks).
    void setMeasured(const Prediction& prediction, const Timeline& measured, int devices);
    void clearMeasured();
    const TimelineLayout* measured() const { return m_measured ? &*m_measured : nullptr; }
    /// The prediction as it is drawn over the recording: shifted so that both begin with their first task, or also
    /// `stretched` to the recording's length. Null without a recording. O(tasks).
    void align(const Prediction& prediction, const Timeline& measured, int devices, bool stretched);
    const TimelineLayout* outlines() const { return m_outlines ? &*m_outlines : nullptr; }

    const TimelineLayout* preview() const { return m_preview.get(); } ///< null: none
    void setPreview(std::shared_ptr<const TimelineLayout> layout) { m_preview = std::move(layout); }
    /// A preview that shows the present tasks at other times, see TimelineLayout::retime(). The copy is kept for the
    /// next preview.
    void previewRetimed(const Prediction& prediction, int device, std::span<const std::uint32_t> positions,
                        TaskId changed);

private:
    std::shared_ptr<const TimelineLayout> m_present = std::make_shared<const TimelineLayout>();
    std::shared_ptr<const TimelineLayout> m_before;
    std::optional<TimelineLayout> m_measured, m_outlines;
    std::shared_ptr<const TimelineLayout> m_preview;
    std::shared_ptr<TimelineLayout> m_retimed; ///< a copy of m_present with the times of the current drag
};

} // namespace pipewright
