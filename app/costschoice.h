// SPDX-License-Identifier: GPL-3.0-or-later
// The options --costs-from and --costs-of of commands that take another schedule's costs: a design, or a recorded run,
// of which an imported trace does not say which design it recorded.
#pragma once

#include "app/command.h"
#include "core/design/design.h"

#include <string>

namespace pipewright::app {

struct CostsChoice {
    std::string from, recorded; ///< as given

    void addTo(Command command);
    bool given() const { return !from.empty() || !recorded.empty(); }
    /// The design that holds the costs, with them. Throws Error.
    Design read() const;
};

} // namespace pipewright::app
