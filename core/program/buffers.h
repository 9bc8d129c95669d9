// SPDX-License-Identifier: GPL-3.0-or-later
// The buffers of a Program, packed. Most buffers of a step differ from a buffer of an earlier microbatch only in the
// microbatch. So the common part, the *shape*, is stored once, and each buffer stores only the number of its shape and
// its microbatch: 8 bytes instead of 32, with several buffers per block. Equal shapes are found in a small table of
// recent ones. A shape that the table has dropped is stored again, so a list without common shapes needs about as much
// memory as an unpacked one.
#pragma once

#include "core/base/units.h"
#include "core/program/bufferkind.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pipewright {

using BufferId = std::uint32_t;
inline constexpr std::uint32_t none = 0xffff'ffff;

/// The kind of the buffer that a transfer, or a copy to or from the host's memory, fills from one of this kind.
BufferKind receivedKind(BufferKind sent);

/// A place in a device's memory. `stage` and `microbatch` are of the value it holds: the stage whose F
/// made an Output, and for a Gradient the stage whose I or B made it.
struct Buffer {
    Bytes bytes = 0;
    BufferKind kind = BufferKind::Output;
    std::uint16_t replica = 0;
    std::int32_t device = 0;
    std::int32_t stage = 0;
    std::int32_t microbatch = 0;     ///< -1 for persistent buffers; weights: their version
    std::int32_t consumerStage = -1; ///< Gradient: the stage it is for
    bool skip = false;               ///< an Output or Gradient of a skip connection, not of the chain

    bool operator==(const Buffer&) const = default;
};

/// Used like a vector whose elements are read by value.
class Buffers {
public:
    std::size_t size() const { return m_entries.size(); }
    bool empty() const { return m_entries.empty(); }
    void reserve(std::size_t buffers) { m_entries.reserve(buffers); }
    Buffer operator[](std::size_t buffer) const
    {
        const Entry entry = m_entries[buffer];
        const Shape& shape = m_shapes[entry.shape];
        return {shape.bytes, shape.kind,       shape.replica,       shape.device,
                shape.stage, entry.microbatch, shape.consumerStage, shape.skip};
    }
    BufferKind kind(BufferId buffer) const { return m_shapes[m_entries[buffer].shape].kind; }
    Bytes bytes(BufferId buffer) const { return m_shapes[m_entries[buffer].shape].bytes; }

    [[gnu::always_inline]] inline void push_back(const Buffer& buffer)
    {
        const Shape shape{buffer.bytes,   buffer.device, buffer.stage, buffer.consumerStage,
                          buffer.replica, buffer.kind,   buffer.skip};
        Set& recent = recentLike(shape);
        if (recent.front() != none && m_shapes[recent.front()] == shape)
            m_entries.push_back({recent.front(), buffer.microbatch});
        else
            m_entries.push_back({find(shape, recent), buffer.microbatch});
    }

    /// Inserts `times` copies of the `length` buffers before `end`. Each copy is shifted by `microbatches` against the
    /// previous one, and the buffers from `end` on are shifted by the sum. Buffers without a microbatch (weights) are
    /// not shifted.
    void repeat(std::size_t end, std::size_t length, std::uint32_t times, std::int32_t microbatches);

    class Iterator {
    public:
        Iterator(const Buffers& list, std::size_t at) : m_list(list), m_at(at) {}
        Buffer operator*() const { return m_list[m_at]; }
        Iterator& operator++()
        {
            ++m_at;
            return *this;
        }
        bool operator!=(const Iterator& other) const { return m_at != other.m_at; }

    private:
        const Buffers& m_list;
        std::size_t m_at;
    };
    Iterator begin() const { return {*this, 0}; }
    Iterator end() const { return {*this, size()}; }

    bool operator==(const Buffers& other) const;

private:
    struct Entry {
        std::uint32_t shape;
        std::int32_t microbatch;
    };
    struct Shape {
        Bytes bytes;
        std::int32_t device, stage, consumerStage;
        std::uint16_t replica;
        BufferKind kind;
        bool skip;
        bool operator==(const Shape&) const = default;
    };
    using Set = std::array<std::uint32_t, 4>; ///< shapes, most recently used first; none: free

    static constexpr std::size_t kinds = 32; ///< more than there are, and a power of two
    static_assert(bufferKindCount <= kinds);
    static constexpr std::size_t mostSets = std::size_t{1} << 15;

    /// The recent shapes of this kind, stage and replica; in a full-size table others may share the set.
    Set& recentLike(const Shape& shape)
    {
        const std::size_t set = (static_cast<std::size_t>(shape.stage) + 61 * std::size_t{shape.replica}) * kinds
                                + static_cast<std::size_t>(shape.kind);
        if (set >= m_recent.size() && m_recent.size() < mostSets)
            growFor(set);
        return m_recent[set & (m_recent.size() - 1)];
    }
    void growFor(std::size_t set);
    std::uint32_t find(const Shape& shape, Set& recent);

    std::vector<Entry> m_entries; ///< per buffer
    std::vector<Shape> m_shapes;
    std::vector<Set> m_recent; ///< a power of two of them
};

} // namespace pipewright
