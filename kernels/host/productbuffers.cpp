// SPDX-License-Identifier: GPL-3.0-or-later
// Fills the pool by taking buffers until enough different ones have been seen, and giving all of them back.
#include "kernels/host/productbuffers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <new>

#include <sys/mman.h>

// OpenBLAS exports these functions, but no header declares them. They are weak, so that a build without them links; the
// pool is then not filled beforehand.
extern "C" {
[[gnu::weak]] void* blas_memory_alloc(int);
[[gnu::weak]] void blas_memory_free(void*);
}

namespace pipewright::kernels {

namespace {

// Address space for one more buffer: 128 MiB, and 64 MiB for the arena that malloc, which OpenBLAS may call, makes for
// a new thread.
constexpr std::size_t roomBytes = std::size_t{200} << 20;
constexpr std::size_t mostBuffers = 32; // OpenBLAS ends the program at a build-time limit, which is at least 50

// Guarded by `mutex`.
std::mutex mutex;
std::size_t threads = 0, known = 0;
std::array<void*, mostBuffers> pool{}; ///< the first `known` entries are buffers of OpenBLAS

bool hasRoom()
{
    void* const place =
        mmap(nullptr, roomBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return place != MAP_FAILED && munmap(place, roomBytes) == 0;
}

} // namespace

ProductBuffer::ProductBuffer()
{
    const std::lock_guard lock(mutex);
    const std::size_t wanted = std::min(threads + 1, mostBuffers);
    if (blas_memory_alloc != nullptr && blas_memory_free != nullptr && known < wanted) {
        // Other threads may be using known buffers, so each call may allocate a new one.
        std::array<void*, mostBuffers> taken{};
        std::size_t count = 0;
        while (known < wanted && hasRoom()) {
            void* const buffer = taken[count++] = blas_memory_alloc(0);
            if (std::find(pool.begin(), pool.begin() + known, buffer) == pool.begin() + known)
                pool[known++] = buffer;
        }
        std::for_each(taken.begin(), taken.begin() + count, blas_memory_free);
        if (known < wanted)
            throw std::bad_alloc();
    }
    ++threads;
}

ProductBuffer::~ProductBuffer()
{
    const std::lock_guard lock(mutex);
    --threads;
}

} // namespace pipewright::kernels
