// SPDX-License-Identifier: GPL-3.0-or-later
// How long work on a trace tells how far it is, and is stopped.
#pragma once

#include "core/base/diagnostic.h"

#include <functional>

namespace pipewright {

struct WorkProgress {
    /// Called now and then with what was done of the whole, 0 to 1; false stops the work.
    std::function<bool(double)> report = {};

    /// Throws Error "cancelled" when the work is to stop.
    void at(double fraction, const std::string& where) const
    {
        if (report && !report(fraction))
            throw Error(where, "cancelled", "nothing was written");
    }
    /// Of a part of the work that lies between two fractions of the whole.
    WorkProgress part(double from, double to) const
    {
        if (!report)
            return {};
        return {[whole = report, from, to](double fraction) { return whole(from + (to - from) * fraction); }};
    }
};

} // namespace pipewright
