// SPDX-License-Identifier: GPL-3.0-or-later
// The facts of a block for the shown side: its times, the memory it frees, the bytes it sends, and the source of each
// number. With a recording, the name of a fact that exists only in the prediction says so.
#pragma once

#include "gui/document/document.h"
#include "gui/inspector/blockexplanation.h"
#include "gui/widgets/factlist.h"

namespace pipewright {

/// `answers`: from the document's prediction, which must exist. O(tasks) for the slack.
std::vector<Fact> blockFacts(const Document& document, const BlockAnswers& answers);

} // namespace pipewright
