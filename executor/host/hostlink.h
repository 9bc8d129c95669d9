// SPDX-License-Identifier: GPL-3.0-or-later
// A link between two threads of this process. Both sides append to a list each; the n-th of one matches
// the n-th of the other, and the later of the two copies (outside the lock, which is held for a few instructions). With
// slots, a send that comes first is stored in one and its source is free at once; when all slots are taken it simply
// stays posted. The slots lie in the sender's device, which counts them.
#pragma once

#include "executor/host/hoststream.h"

#include <mutex>
#include <vector>

namespace pipewright {

class HostLink final : public Link {
public:
    /// `storage`: storageFor() bytes of the sender's device; null where that is nothing.
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
    /// Null where nothing that is sent has any bytes.
    std::byte* slotData(int slot)
    {
        return m_storage ? m_storage->region().data + slot * m_options.stride(64) : nullptr;
    }

    const LinkOptions m_options;
    mutable std::mutex m_mutex; ///< guards all below but the slots' contents
    std::vector<Sent> m_sends;
    std::vector<Posting> m_receives;
    std::vector<int> m_freeSlots;
    std::size_t m_matched = 0;
    bool m_mismatch = false;
    std::unique_ptr<Allocation> m_storage;
};

} // namespace pipewright
