// SPDX-License-Identifier: GPL-3.0-or-later
// A Chrome trace that is accepted has slices with ends behind their starts on lanes that exist, and can be laid out.
#include "structured.h"
#include "survive.h"
#include "traces/import/chromejson.h"
#include "traces/import/recognisedblocks.h"
#include "traces/store/tracks.h"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    TraceData trace;
    const auto source = bytesOf({reinterpret_cast<const char*>(data), size});
    if (!fuzz::survives([&] { trace = importChromeJson(*source, "rank1.json"); }))
        return 0;
    for (const Activity& activity : trace.activities)
        fuzz::require(activity.end >= activity.start && activity.lane < trace.lanes.size()
                      && activity.name < trace.strings.size() && activity.detail < trace.details.size());
    recogniseBlocks(trace);
    std::size_t laidOut = 0;
    for (const TrackLayout::Row& row : layOut(trace).rows)
        laidOut += row.activities.size();
    fuzz::require(laidOut == trace.activities.size());
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    return fuzz::mutateJson(data, size, most, seed);
}
