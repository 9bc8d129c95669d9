// SPDX-License-Identifier: GPL-3.0-or-later
// A cluster file that is accepted is the same after writing and reading it.
#include "core/presets/clusterfile.h"
#include "structured.h"
#include "survive.h"
#include "temporaryfile.h"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static const fuzz::TemporaryFile file(".json"), again(".json");
    file.fill(data, size);
    Cluster cluster;
    if (!fuzz::survives([&] { cluster = readClusterFile(file.path()); }))
        return 0;
    fuzz::survives([&] { (void)readClusterFile(file.path(), 2); });
    again.fill(clusterFileText(cluster, "again", "fuzzing"));
    fuzz::require(readClusterFile(again.path()) == cluster);
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    return fuzz::mutateJson(data, size, most, seed);
}
