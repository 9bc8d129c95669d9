// SPDX-License-Identifier: GPL-3.0-or-later
// Runs whose devices are ranks that reach each other through sockets, each on a thread of the test.
#pragma once

#include "executor/mpi/rankbackend.h"
#include "executor/run/run.h"
#include "makers/localmeshes.h"

#include <string>
#include <thread>
#include <vector>

namespace pipewright::test {

struct RankedRun {
    RunResult result;                  ///< of the rank that reports
    std::vector<std::string> failures; ///< what each rank threw
};

/// A run on a thread for each rank.
inline RankedRun onRanks(const Design& design, const RunOptions& options, int count)
{
    auto meshes = createLocalMeshes(count);
    RankedRun ran{{}, std::vector<std::string>(meshes.size())};
    std::vector<std::thread> ranks;
    for (std::size_t r = 0; r < meshes.size(); ++r)
        ranks.emplace_back([&, r] {
            try {
                RunOptions own = options;
                own.createBackend = [&](int) { return createRankBackend(std::move(meshes[r]), 20'000'000'000); };
                RunResult result = run(design, own);
                if (result.isRankZero)
                    ran.result = std::move(result);
            } catch (const Error& error) {
                ran.failures[r] = error.what();
            }
        });
    for (std::thread& rank : ranks)
        rank.join();
    return ran;
}

} // namespace pipewright::test
