// SPDX-License-Identifier: GPL-3.0-or-later
// `search --offload auto`: searches for the order and the offloading stages together.
#pragma once

#include "core/design/design.h"
#include "core/search/search.h"

#include <string>

namespace pipewright::app {

struct SearchOutput {
    std::string file;
    bool replace = false, json = false;
};

/// Writes the design, prints what was tried and returns the exit code. Throws Error as searchWithOffload() does.
int searchOffload(const Design& design, const SearchOptions& options, const SearchOutput& to);

} // namespace pipewright::app
