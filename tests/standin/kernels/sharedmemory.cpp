// SPDX-License-Identifier: GPL-3.0-or-later
#include "sharedmemory.h"

#include "fibre.h"

#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#define STANDIN_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STANDIN_ASAN
#endif
#endif
#ifdef STANDIN_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(place, bytes) ((void)(place), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(place, bytes) ((void)(place), (void)(bytes))
#endif

namespace standin {

namespace {

constexpr std::size_t between = 64; ///< guard bytes

/// Fills with ones: NaN as a float, -1 as an integer. Avoids the thread sanitizer's memset, which would report a race,
/// since unordered blocks do this one after another.
void spoil(std::byte* place, std::size_t bytes)
{
    if (!fibresAreWatched)
        std::memset(place, 0xff, bytes);
}

} // namespace

SharedMemory::SharedMemory() : m_memory(new std::byte[room])
{
    ASAN_POISON_MEMORY_REGION(m_memory.get(), room);
}

SharedMemory::~SharedMemory()
{
    ASAN_UNPOISON_MEMORY_REGION(m_memory.get(), room);
}

void SharedMemory::forget()
{
    ASAN_POISON_MEMORY_REGION(m_memory.get(), room);
    m_count = m_end = m_sum = 0;
}

void SharedMemory::begin()
{
    for (const Variable& each : std::span(m_variables).first(m_count))
        spoil(each.place, each.bytes);
}

void* SharedMemory::find(const void* key, std::size_t bytes, std::size_t alignment)
{
    for (const Variable& each : std::span(m_variables).first(m_count))
        if (each.key == key)
            return each.place;
    m_sum += bytes;
    void* place = m_memory.get() + m_end;
    std::size_t left = room - m_end;
    if (m_sum > most || m_count == m_variables.size() || m_end > room || !std::align(alignment, bytes, place, left))
        return nullptr;
    m_end = std::size_t(static_cast<std::byte*>(place) - m_memory.get()) + bytes + between;
    ASAN_UNPOISON_MEMORY_REGION(place, bytes);
    spoil(static_cast<std::byte*>(place), bytes);
    m_variables[m_count++] = {key, static_cast<std::byte*>(place), bytes};
    return place;
}

} // namespace standin
