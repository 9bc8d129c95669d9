// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/blocklabel.h"

#include <algorithm>

namespace pipewright {
namespace {

constexpr double twoLines = 28; // pixels of height from which a number stands below its letter
constexpr double letterWidth = 11, digitWidth = 7, stageWidth = 23, nameWidth = 36;

/// The widest number is taken from the last blocks of a device: they have its highest microbatch, or one with as many
/// digits.
double numberWidth(const Lane& lane)
{
    constexpr std::size_t looked = 8;
    const std::vector<LaneBlock>& blocks = lane.blocks();
    int highest = 0;
    for (std::size_t i = blocks.size() - std::min(looked, blocks.size()); i < blocks.size(); ++i)
        highest = std::max(highest, blocks[i].block.microbatch);
    int digits = 1;
    for (; highest >= 10; highest /= 10)
        ++digits;
    return std::max(letterWidth, 4 + digits * digitWidth);
}

/// Mean block duration of the whole lane; O(log blocks).
double meanDuration(const Lane& lane)
{
    if (lane.blocks().empty())
        return 0;
    double busy = 0;
    for (const double time : lane.timePerOpUntil(1e300))
        busy += time;
    return busy / static_cast<double>(lane.blocks().size());
}

} // namespace

LaneLabels::LaneLabels(const Lane& lane, double nsPerPixel, double height)
    : m_nsPerPixel(nsPerPixel), m_number(numberWidth(lane))
{
    // The form is chosen for blocks longer than the mean, which have room earlier, so that similar lanes are all
    // labelled.
    constexpr double longer = 1.5;
    const double width = longer * (meanDuration(lane) / nsPerPixel);
    if (width < letterWidth || height < 14)
        return;
    if (height < twoLines)
        m_form = width >= nameWidth ? BlockLabel::Name : BlockLabel::Letter;
    else if (lane.chunks() > 1 && width >= widthOf(BlockLabel::LetterStageAndNumber))
        m_form = BlockLabel::LetterStageAndNumber;
    else
        m_form = width >= m_number ? BlockLabel::LetterAndNumber : BlockLabel::Letter;
}

double LaneLabels::widthOf(BlockLabel form) const
{
    switch (form) {
    case BlockLabel::None: return 0;
    case BlockLabel::Letter: return letterWidth;
    case BlockLabel::Name: return nameWidth;
    case BlockLabel::LetterAndNumber: return m_number;
    case BlockLabel::LetterStageAndNumber: break;
    }
    return std::max(stageWidth, m_number);
}

BlockLabel LaneLabels::of(const LaneBlock& block) const
{
    const double width = static_cast<double>(block.end - block.start) / m_nsPerPixel;
    if (width >= widthOf(m_form))
        return m_form;
    return width >= letterWidth && m_form != BlockLabel::None ? BlockLabel::Letter : BlockLabel::None;
}

} // namespace pipewright
