// SPDX-License-Identifier: GPL-3.0-or-later
// The facts of a block for the side that is shown: its times, what it frees and sends, and where the numbers come from.
// Under a recording, a fact that only the prediction has says so in its name.
#pragma once

#include "gui/document/document.h"
#include "gui/inspector/blockexplanation.h"
#include "gui/widgets/factlist.h"

namespace pipewright {

/// `answers` of the document's prediction, which must be there. O(tasks) for the slack.
std::vector<Fact> blockFacts(const Document& document, const BlockAnswers& answers);

} // namespace pipewright
