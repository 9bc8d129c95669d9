// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/costsfrom.h"

#include "core/base/inputfile.h"
#include "core/files/designfile.h"

#include <filesystem>

namespace pipewright {

bool isTraceWithoutDesign(const std::string& path)
{
    return isDatabase(path) && !TraceReader(path).holdsDesign();
}

CarriedCosts readCostsFrom(const std::string& path, const Design* recorded, BusyMachine busy)
{
    if (!isDatabase(path)) {
        if (recorded)
            throw Error(path, "is no trace, so there is no design that it recorded", "leave out --costs-of");
        return {readDesign(path)};
    }
    const TraceReader trace(path);
    Calibration calibration =
        calibrate(recorded ? *recorded : trace.design(), {{&trace, std::filesystem::path(path).filename().string()}},
                  UnmeasuredStages::Refuse, {}, busy);
    return {std::move(calibration.design), std::move(calibration.notes)};
}

} // namespace pipewright
