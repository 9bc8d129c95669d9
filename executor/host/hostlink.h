// SPDX-License-Identifier: GPL-3.0-or-later
// A link between two threads of this process. Each side appends to a list; the n-th send matches the n-th receive, and
// the side that comes later copies (outside the lock, which is held for a few instructions only). With slots, a send
// that comes first is stored in a slot and its source is free at once; when all slots are taken, it stays posted. The
// slots are in the sender's device and count as its memory.
#pragma once

#include "executor/host/hoststream.h"

#include <mutex>
#include <vector>

namespace pipewright {

class HostLink final : public Link {
public:
    /// `storage`: storageFor() bytes of the sender's device; null if that is 0.
    HostLink(const LinkOptions& options, std::unique_ptr<Allocation> storage);
    static Bytes storageFor(const LinkOptions& options) { return options.storedSends * options.stride(64); }
    Copied send(Stream& stream, const Posting& posting) override;
    Copied receive(Stream& stream, const Posting& posting) override;
    Heads heads() const override;
    void reset() override;

private:
    struct Sent {
        Posting posting;
        int slot = -1;         ///< where it is stored; -1: in the sender's buffers
        bool stored = false;   ///< the slot is filled
        Nanoseconds begun = 0; ///< when storing began
    };

    bool match(std::size_t index);
    /// Null if no transfer has any bytes.
    std::byte* slotData(int slot)
    {
        return m_storage ? m_storage->region().data + slot * m_options.stride(64) : nullptr;
    }

    const LinkOptions m_options;
    mutable std::mutex m_mutex; ///< guards all members below, but not the slots' contents
    std::vector<Sent> m_sends;
    std::vector<Posting> m_receives;
    std::vector<int> m_freeSlots;
    std::size_t m_matched = 0;
    bool m_mismatch = false;
    std::unique_ptr<Allocation> m_storage;
};

} // namespace pipewright
