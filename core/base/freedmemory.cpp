// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/freedmemory.h"

#include <cstdlib> // defines __GLIBC__ where it is the case

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace pipewright {

void keepFreedMemory()
{
#ifdef __GLIBC__
    constexpr int kept = 256 << 20;
    mallopt(M_MMAP_THRESHOLD, kept);
    mallopt(M_TRIM_THRESHOLD, 2 * kept);
#endif
}

void releaseFreedMemory()
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

} // namespace pipewright
