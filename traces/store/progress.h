// SPDX-License-Identifier: GPL-3.0-or-later
// Progress and cancellation of long work on a trace.
#pragma once

#include "core/base/diagnostic.h"

#include <functional>

namespace pipewright {

struct WorkProgress {
    /// Called with the fraction done, 0 to 1; returning false stops the work.
    std::function<bool(double)> report = {};

    /// Throws Error "cancelled" when the work is to stop.
    void at(double fraction, const std::string& where) const
    {
        if (report && !report(fraction))
            throw Error(where, "cancelled", "nothing was written");
    }
    /// For a part of the work between two fractions of the whole.
    WorkProgress part(double from, double to) const
    {
        if (!report)
            return {};
        return {[whole = report, from, to](double fraction) { return whole(from + (to - from) * fraction); }};
    }
};

} // namespace pipewright
