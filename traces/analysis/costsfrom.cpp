// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/costsfrom.h"

#include "core/base/inputfile.h"
#include "core/files/designfile.h"
#include "traces/analysis/calibration.h"

#include <filesystem>

namespace pipewright {

Design readCostsFrom(const std::string& path)
{
    if (beginningOf(path, 6) != "SQLite") // a trace is an SQLite database, and a design is text
        return readDesign(path);
    const TraceReader trace(path);
    return calibrate(trace.design(), trace, std::filesystem::path(path).filename().string());
}

} // namespace pipewright
