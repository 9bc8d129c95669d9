// SPDX-License-Identifier: GPL-3.0-or-later
// A database that is accepted as an export of Nsight Systems has slices with ends behind their starts, and can be laid
// out.
#include "survive.h"
#include "traces/import/nsight.h"
#include "traces/import/recognisedblocks.h"
#include "traces/store/tracks.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    // Of all inputs the time goes into files, so they are none of a disk where that can be.
    static const std::filesystem::path folder =
        std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : std::filesystem::temp_directory_path();
    static const std::string path = (folder / ("fuzz-nsight-" + std::to_string(::getpid()))).string();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
    TraceData trace;
    const bool accepted = fuzz::survives([&] { trace = importNsight(path); });
    std::filesystem::remove(path);
    if (!accepted)
        return 0;
    for (const Activity& activity : trace.activities)
        fuzz::require(activity.end >= activity.start && activity.lane < trace.lanes.size()
                      && activity.detail < trace.details.size());
    recogniseBlocks(trace);
    layOut(trace);
    return 0;
}
