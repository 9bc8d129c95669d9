// SPDX-License-Identifier: GPL-3.0-or-later
// The options --costs-from and --costs-of of commands that take costs from another schedule: from a design or a
// recorded run. An imported trace does not contain its design, so --costs-of names it.
#pragma once

#include "app/command.h"
#include "core/design/design.h"

#include <string>

namespace pipewright::app {

struct CostsChoice {
    std::string from, recorded; ///< as given

    void addTo(Command command);
    bool given() const { return !from.empty() || !recorded.empty(); }
    /// The design that has the costs. Throws Error.
    Design read() const;
};

} // namespace pipewright::app
