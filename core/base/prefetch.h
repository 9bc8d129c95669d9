// SPDX-License-Identifier: GPL-3.0-or-later
// Asks for a cache line long before it is needed. For walks that jump between many arrays or lists, where
// the processor's own prefetcher loses the thread and each line would be waited for; a hint, never an access.
// Inlined by force: the compiler takes a function that does nothing else for one without effect and drops it.
#pragma once

namespace pipewright {

[[gnu::always_inline]] inline void prefetch(const void* line)
{
    __builtin_prefetch(line);
}
[[gnu::always_inline]] inline void prefetchForWriting(const void* line)
{
    __builtin_prefetch(line, 1);
}

} // namespace pipewright
