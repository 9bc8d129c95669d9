// SPDX-License-Identifier: GPL-3.0-or-later
// The timeline for assistive technology: a list of lanes, each a list of the visible blocks and of the transfers
// below them, all with names that say what a person would see. Interfaces are made when an
// assistive tool requests them; otherwise they cost nothing.
#pragma once

namespace pipewright {

class TimelineView;

/// Makes Qt ask for the interfaces of every TimelineView. May be called any number of times.
void installTimelineAccessibility();
/// Tells assistive technology, if any is there, that the Document's selection is another block.
void announceSelection(TimelineView& view);

} // namespace pipewright
