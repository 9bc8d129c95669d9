// SPDX-License-Identifier: GPL-3.0-or-later
// The options of commands that take costs from another schedule: from a design or a recorded run (--costs-from). An
// imported trace does not contain its design, so --costs-of names it; a trace of a busy machine counts only where
// --busy-machine says so; --uneven says what the unevenness of stages is put down to.
#pragma once

#include "app/command.h"
#include "core/design/design.h"
#include "core/design/recutcosts.h"

#include <functional>
#include <optional>
#include <string>

namespace pipewright::app {

struct CostsChoice {
    std::string from, recorded, uneven; ///< as given
    bool busyMachine = false;

    void addTo(CLI::App& command);
    bool given() const { return !from.empty() || !recorded.empty() || !uneven.empty() || busyMachine; }
    /// The design that has the costs; prints notes on how a trace became costs. Throws Error.
    Design read() const;
    std::optional<Unevenness> unevenness() const; ///< throws Error
};

/// What a design that takes its costs from another one takes when their unevenness is put down to the one or the other.
struct UnevenEnds {
    Unevenness assumed = Unevenness::OfDevices;
    std::string why;
    Nanoseconds ofDevices = 0, ofLayers = 0; ///< makespans
};

/// Nothing where it makes no difference, where it is known, or where the user has said it. `make`: the design by
/// either. Throws Error.
std::optional<UnevenEnds> unevenEnds(const CostsChoice& choice, const Design& measured,
                                     const std::function<Design(Unevenness)>& make);
/// Gives the design the chosen costs (withCostsFrom()); returns as unevenEnds() does. Throws Error.
std::optional<UnevenEnds> takeCosts(const CostsChoice& choice, Design& design);
void printNote(const UnevenEnds& ends);
Json toJson(const UnevenEnds& ends);

} // namespace pipewright::app
