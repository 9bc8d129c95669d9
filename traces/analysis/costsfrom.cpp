// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/costsfrom.h"

#include "core/files/designfile.h"
#include "traces/analysis/calibration.h"

#include <filesystem>
#include <fstream>

namespace pipewright {

Design readCostsFrom(const std::string& path)
{
    char start[6] = {}; // a trace is an SQLite database, and a design is text
    std::ifstream(path, std::ios::binary).read(start, sizeof start);
    if (std::string_view(start, sizeof start) != "SQLite")
        return readDesign(path);
    const TraceReader trace(path);
    return calibrate(trace.design(), trace, std::filesystem::path(path).filename().string());
}

} // namespace pipewright
