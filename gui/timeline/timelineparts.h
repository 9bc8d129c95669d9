// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of a TimelineView, each with one task and its own state. They are constructed in this order, each from the
// parts that it uses; gestures and the menus may use any of them.
#pragma once

#include "gui/timeline/blockselection.h"
#include "gui/timeline/dropsession.h"
#include "gui/timeline/framemeter.h"
#include "gui/timeline/gesture.h"
#include "gui/timeline/idlebars.h"
#include "gui/timeline/kernellanes.h"
#include "gui/timeline/lanecanvas.h"
#include "gui/timeline/lanememory.h"
#include "gui/timeline/lanes.h"
#include "gui/timeline/memberlanes.h"
#include "gui/timeline/overlaycomposer.h"
#include "gui/timeline/patternpaste.h"
#include "gui/timeline/readings.h"
#include "gui/timeline/shownschedule.h"
#include "gui/timeline/timelineedits.h"
#include "gui/timeline/timelinemap.h"
#include "gui/timeline/timelinemenus.h"
#include "gui/timeline/timelinescroll.h"
#include "gui/timeline/transferlanes.h"

namespace pipewright {

struct TimelineParts {
    TimelineParts(TimelineView& view, Document& document)
        : view(view), document(document), shown(document), lanes(view, document, shown), scroll(view, lanes, shown),
          transfers(document), kernels(document), forecast(document), members(document, forecast),
          map(*view.viewport(), document, shown, lanes, scroll, {transfers, kernels, members}),
          selection(document, shown, transfers), drop(document, shown, map, selection),
          overlay(*view.viewport(), {document, shown, map, scroll, readings, drop, hand}),
          edits(view, {document, shown, selection, transfers, members, hand, lanes}),
          canvas(view, {document, shown, lanes, map, scroll, transfers, kernels, members, memory, idle, selection, drop,
                        hand}),
          paste(view, *this), menus(view, *this)
    {
    }

    TimelineView& view;
    Document& document;
    ShownSchedule shown;
    Lanes lanes;
    TimelineScroll scroll;
    TransferLanes transfers;
    KernelLanes kernels;
    MemberForecast forecast; ///< of the members of groups
    MemberLanes members;
    LaneMemory memory;
    IdleBars idle;
    TimelineMap map;
    BlockSelection selection;
    Readings readings;
    GestureInHand hand;
    DropSession drop;
    OverlayComposer overlay;
    TimelineEdits edits;
    LaneCanvas canvas;
    PatternPaste paste;
    TimelineMenus menus;
    FrameMeter frames;
};

/// Every key of the view is one of its actions, with a text, so that a list of shortcuts can be made from them.
void addTimelineActions(TimelineView& view, TimelineParts& parts);

} // namespace pipewright
