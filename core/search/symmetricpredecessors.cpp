// SPDX-License-Identifier: GPL-3.0-or-later
// One pass over the tasks: each is compared with the first one of its stage and pass. O(tasks).
#include "core/search/symmetricpredecessors.h"

#include <algorithm>

namespace pipewright {

std::vector<std::int32_t> symmetricPredecessors(const SearchModel& model)
{
    std::vector<std::int32_t> before(model.tasks.size(), -1);
    std::vector<std::int32_t> first(taskKinds * model.stages, -1), last(first);
    const auto sameExtras = [&model](std::int32_t a, std::int32_t b) {
        return std::ranges::equal(model.extrasOf(a), model.extrasOf(b), {}, &ExtraInput::delay, &ExtraInput::delay);
    };
    for (std::size_t t = 0; t < model.tasks.size(); ++t) {
        const SearchTask& task = model.tasks[t];
        const std::size_t slot = taskKinds * task.stage + kindOf(task.op);
        if (first[slot] < 0)
            first[slot] = static_cast<std::int32_t>(t);
        const SearchTask& like = model.tasks[first[slot]];
        if (task.op != like.op || task.duration != like.duration || task.delay != like.delay || task.taken != like.taken
            || task.passing != like.passing || task.freed != like.freed || task.earliest != like.earliest
            || task.lockedAfter >= 0 || !sameExtras(first[slot], static_cast<std::int32_t>(t)))
            return {};
        before[t] = last[slot];
        last[slot] = static_cast<std::int32_t>(t);
    }
    return before;
}

} // namespace pipewright
