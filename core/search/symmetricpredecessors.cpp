// SPDX-License-Identifier: GPL-3.0-or-later
// One pass over the tasks: each is compared with the first one of its stage and pass. O(tasks).
#include "core/search/symmetricpredecessors.h"

namespace pipewright {

std::vector<std::int32_t> symmetricPredecessors(const SearchModel& model)
{
    std::vector<std::int32_t> before(model.tasks.size(), -1);
    std::vector<std::int32_t> first(passRanks * model.stages, -1), last(first);
    for (std::size_t t = 0; t < model.tasks.size(); ++t) {
        const SearchTask& task = model.tasks[t];
        const std::size_t slot = passRanks * task.stage + passRank(task.op);
        if (first[slot] < 0)
            first[slot] = static_cast<std::int32_t>(t);
        const SearchTask& like = model.tasks[first[slot]];
        if (task.op != like.op || task.duration != like.duration || task.delay != like.delay || task.taken != like.taken
            || task.passing != like.passing || task.freed != like.freed || task.earliest != like.earliest
            || task.lockedAfter >= 0)
            return {};
        before[t] = last[slot];
        last[slot] = static_cast<std::int32_t>(t);
    }
    return before;
}

} // namespace pipewright
