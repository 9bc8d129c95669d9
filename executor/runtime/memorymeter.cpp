// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/runtime/memorymeter.h"

#include "core/base/diagnostic.h"

#include <algorithm>
#include <cstring>

namespace pipewright {

MemoryMeter::MemoryMeter(int device, bool check, std::size_t mostLive) : m_device(device), m_check(check)
{
    if (check)
        m_places.reserve(mostLive);
}

void MemoryMeter::addPersistent(Bytes bytes)
{
    m_persistent += bytes;
    m_live += bytes;
    m_peak = std::max(m_peak, m_live);
}

void MemoryMeter::acquire(BufferId buffer, Region place)
{
    m_live += place.bytes;
    m_peak = std::max(m_peak, m_live);
    if (!m_check)
        return;
    for (const Live& other : m_places) {
        if (other.buffer == buffer)
            throw Error(where(), "buffer " + std::to_string(buffer) + " begins while it lives",
                        "this is a fault of the compiler: please report it");
        if (place.data < other.place.data + other.place.bytes && other.place.data < place.data + place.bytes)
            throw Error(where(),
                        "buffers " + std::to_string(buffer) + " and " + std::to_string(other.buffer) + " overlap",
                        "this is a fault of the memory plan: please report it");
    }
    m_places.push_back({buffer, place});
}

void MemoryMeter::release(BufferId buffer, Region place)
{
    m_live -= place.bytes;
    if (!m_check)
        return;
    const auto found =
        std::find_if(m_places.begin(), m_places.end(), [&](const Live& live) { return live.buffer == buffer; });
    if (found == m_places.end())
        throw Error(where(), "buffer " + std::to_string(buffer) + " is released but does not live",
                    "this is a fault of the compiler: please report it");
    *found = m_places.back();
    m_places.pop_back();
    // All ones is a NaN in every floating-point format.
    if (place.data != nullptr && place.bytes > 0)
        std::memset(place.data, 0xff, static_cast<std::size_t>(place.bytes));
}

void MemoryMeter::expectOnlyPersistent() const
{
    if (m_live != m_persistent)
        throw Error(where(), formatSize(m_live - m_persistent) + " still live at the end of the step",
                    "every buffer needs a Free: compile the schedule again");
}

std::string MemoryMeter::where() const
{
    return "device " + std::to_string(m_device);
}

} // namespace pipewright
