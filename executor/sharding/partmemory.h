// SPDX-License-Identifier: GPL-3.0-or-later
// Memory for tensors within a Program's buffers: kept tensors one after another, temporary ones in the first hole that
// fits. Both give the same places for the same calls, so a dry run (drydevice.h) finds the size of the buffers.
#pragma once

#include "executor/runtime/backend.h"
#include "executor/sharding/memberdevice.h"

#include <map>

namespace pipewright::sharding {

/// Tensors one after another; nothing is freed before rewind().
class KeptMemory final : public TensorMemory {
public:
    /// Starts again at the region's beginning. take() throws Error when the region is too small.
    void rewind(Region region);
    std::byte* take(std::size_t bytes) override;
    void giveBack(std::byte*, std::size_t) override {}
    bool owns(const void* data) const { return data >= m_region.data && data < m_region.data + m_region.bytes; }
    Bytes used() const { return m_used; }

private:
    Region m_region;
    Bytes m_used = 0;
};

/// First fit; neighbouring holes are merged. O(holes) per call; there are few holes.
class PassingMemory final : public TensorMemory {
public:
    /// Requires that everything has been given back.
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
