// SPDX-License-Identifier: GPL-3.0-or-later
// Memory of a Program's buffers as tensors take it: kept tensors one behind the other, passing ones wherever there is a
// hole. Both give the same places for the same calls, so a dry run (drydevice.h) finds how large the buffers must be.
#pragma once

#include "executor/runtime/backend.h"
#include "executor/sharding/memberdevice.h"

#include <map>

namespace pipewright::sharding {

/// One behind the other; nothing comes back before rewind().
class KeptMemory final : public TensorMemory {
public:
    /// From the region's beginning. Throws Error when a region that is used is too small.
    void rewind(Region region);
    std::byte* take(std::size_t bytes) override;
    void giveBack(std::byte*, std::size_t) override {}
    bool owns(const void* data) const { return data >= m_region.data && data < m_region.data + m_region.bytes; }
    Bytes used() const { return m_used; }

private:
    Region m_region;
    Bytes m_used = 0;
};

/// First fit; neighbouring holes are joined. O(holes) per call, of which there are few.
class PassingMemory final : public TensorMemory {
public:
    /// Everything must have been given back.
    void rewind(Region region);
    std::byte* take(std::size_t bytes) override;
    void giveBack(std::byte* data, std::size_t bytes) override;
    Bytes highest() const { return m_highest; } ///< since the last rewind()

private:
    Region m_region;
    std::map<Bytes, Bytes> m_holes; ///< length by offset, below m_top
    Bytes m_top = 0, m_highest = 0;
};

} // namespace pipewright::sharding
