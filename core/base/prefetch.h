// SPDX-License-Identifier: GPL-3.0-or-later
// Prefetches a cache line, for walks that jump between many arrays, which the hardware prefetcher cannot predict. A
// hint, never an access. Inlined by force, since the compiler drops calls of a function without effect.
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
