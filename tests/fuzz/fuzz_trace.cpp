// SPDX-License-Identifier: GPL-3.0-or-later
// A database that says it is a trace is read as explain, calibrate and the trace window read it, or refused with a
// reason; slices of what is shown end behind their starts.
#include "core/program/compile.h"
#include "databasefile.h"
#include "sqlitemutator.h"
#include "survive.h"
#include "traces/store/activitystore.h"
#include "traces/store/tracereader.h"

#include <optional>

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static fuzz::DatabaseFile file(".db");
    file.fill(data, size);
    std::optional<TraceReader> opened;
    if (!fuzz::survives([&] { opened.emplace(file.path()); }))
        return 0; // the second reader would open it the same way
    fuzz::survives([&] {
        const TraceReader& reader = *opened;
        (void)reader.header();
        (void)reader.complete();
        (void)reader.whatMayBeMissing();
        (void)reader.peakBytes();
        (void)reader.resultJson();
        (void)reader.steps();
        if (!reader.holdsDesign())
            return;
        const Design design = reader.design();
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        const Timeline timeline = reader.timeline(program, reader.medianStep());
        for (TaskId task = 0; task < program.tasks.size(); ++task)
            fuzz::require(timeline.end[task] >= timeline.start[task]);
        if (reader.holdsGpuWork())
            (void)reader.gpuWork(program, reader.medianStep());
    });
    fuzz::survives([&] {
        const StoredActivities shown = readActivities(file.path());
        for (const Track& track : shown.tracks)
            for (std::size_t i = 0; i < track.start.size(); ++i)
                fuzz::require(track.end[i] >= track.start[i]);
    });
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    return fuzz::mutateDatabase(data, size, most, seed);
}
