// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/costschoice.h"

#include "core/files/designfile.h"
#include "traces/analysis/costsfrom.h"

namespace pipewright::app {

void CostsChoice::addTo(Command command)
{
    command
        .option("--costs-from", from,
                "a design or a trace of the same model: its model, machine and costs, carried over to this schedule")
        .typeName("DESIGN|TRACE");
    command
        .option("--costs-of", recorded,
                "the design that the trace recorded, where the trace is imported and does not hold it")
        .typeName("DESIGN");
}

Design CostsChoice::read() const
{
    if (from.empty())
        throw Error("--costs-of", "says of which design a trace is, and no trace is given", "add --costs-from TRACE");
    if (recorded.empty()) {
        if (isTraceWithoutDesign(from))
            throw Error(from, "the trace was imported and does not say which design it recorded",
                        "name the design of the schedule that ran: --costs-of DESIGN");
        return readCostsFrom(from);
    }
    const Design design = readDesign(recorded);
    return readCostsFrom(from, &design);
}

} // namespace pipewright::app
