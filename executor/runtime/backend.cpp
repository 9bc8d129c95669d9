// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/runtime/backend.h"

#include "executor/runtime/collectives.h"

#include <numeric>

namespace pipewright {

std::vector<std::unique_ptr<Communicator>> Backend::createCommunicators(std::span<const int>)
{
    return {};
}

std::vector<std::unique_ptr<Communicator>> Backend::createCommunicators()
{
    std::vector<int> all(static_cast<std::size_t>(devices()));
    std::iota(all.begin(), all.end(), 0);
    return createCommunicators(all);
}

std::unique_ptr<PairSum> Backend::createPairSum(int, int, std::size_t)
{
    return nullptr;
}

void Backend::giveUp(std::span<Abortable* const> all)
{
    for (Abortable* each : all)
        each->abort();
    for (Abortable* each : all)
        each->awaitCalls();
}

} // namespace pipewright
