// SPDX-License-Identifier: GPL-3.0-or-later
// A table of kernel groups that is accepted has a group for every kernel.
#include "structured.h"
#include "survive.h"
#include "temporaryfile.h"
#include "traces/store/kernelgroups.h"

#include <optional>

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static const fuzz::TemporaryFile file(".json");
    file.fill(data, size);
    std::optional<KernelGroups> groups;
    if (!fuzz::survives([&] { groups.emplace(file.path()); }))
        return 0;
    for (const char* kernel :
         {"", "ampere_bf16_s16816gemm", "ncclDevKernel_AllReduce", "void flash<int>::fwd(float*)"}) {
        for (const ActivityKind kind : {ActivityKind::Kernel, ActivityKind::Memcpy})
            fuzz::require(groups->of(kind, kernel) < groups->names().size());
        (void)groups->isCommunication(kernel);
        (void)groups->isCommunicationStream(kernel);
    }
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    return fuzz::mutateJson(data, size, most, seed);
}
