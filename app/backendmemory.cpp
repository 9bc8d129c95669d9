// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/backendmemory.h"

#include "app/gpus.h"

#include "executor/run/backendcheck.h"
#include "executor/run/grouprun.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright::app {

MemoryCheck memoryWith(const Design& design, const std::string& backend, RunOptions::Maths maths)
{
    if (std::find(std::begin(runBackends), std::end(runBackends), backend) == std::end(runBackends))
        throw Error("--for", "\"" + backend + "\" is no backend", "use host, mpi or cuda");
    RunOptions options;
    options.backend = backend;
    options.maths = maths;
    if (backend == "cuda")
        try {
            Diagnostics doubts; // not reported here: the run itself does
            options.gpus = true;
            GpuChoice choice;
            choice.shares = gpusOfRun(design, meansOf(options));
            choice.recordKernels = false;
            options.createBackend = cudaBackend(choice, devicesOfRun(design, meansOf(options)), doubts);
        } catch (const Error& error) {
            return {{}, error.what(), {}};
        }
    // With processes a device holds as much as with threads: without stored sends links hold nothing.
    return checkMemory(design, options);
}

std::string backendMemoryText(std::span<const HeldMemory> memory, const std::string& backend)
{
    const HeldMemory& fullest = *std::max_element(
        memory.begin(), memory.end(), [](const HeldMemory& a, const HeldMemory& b) { return a.total() < b.total(); });
    const std::string beside = keptParts(memory);
    return fmt::format("predicted: run --backend {} allocates at most {} of a device{}", backend,
                       formatSize(fullest.total()),
                       beside.empty() ? ", for its buffers alone" : "; of it, beside the buffers, at most " + beside);
}

} // namespace pipewright::app
