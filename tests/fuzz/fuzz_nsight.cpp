// SPDX-License-Identifier: GPL-3.0-or-later
// A database that is accepted as an export of Nsight Systems has slices with ends behind their starts, and can be laid
// out.
#include "databasefile.h"
#include "sqlitemutator.h"
#include "survive.h"
#include "traces/import/nsight.h"
#include "traces/import/recognisedblocks.h"
#include "traces/store/tracks.h"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static fuzz::DatabaseFile file(".sqlite");
    file.fill(data, size);
    TraceData trace;
    const bool accepted = fuzz::survives([&] { trace = importNsight(file.path()); });
    if (!accepted)
        return 0;
    for (const Activity& activity : trace.activities)
        fuzz::require(activity.end >= activity.start && activity.lane < trace.lanes.size()
                      && activity.detail < trace.details.size());
    recogniseBlocks(trace);
    layOut(trace);
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    return fuzz::mutateDatabase(data, size, most, seed);
}
