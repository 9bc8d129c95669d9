// SPDX-License-Identifier: GPL-3.0-or-later
// Counts the live bytes of a device while instructions run, so that the measured peak is independent of the prediction.
// In check mode it also keeps the live places, refuses overlaps and double releases, and overwrites released memory, so
// that a use after release shows as NaN.
#pragma once

#include "executor/runtime/backend.h"

#include <vector>

namespace pipewright {

class MemoryMeter {
public:
    /// `mostLive` places are reserved for check mode; nothing is allocated afterwards.
    MemoryMeter(int device, bool check, std::size_t mostLive);

    /// Counts memory that lives during the whole run.
    void addPersistent(Bytes bytes);
    /// Throws Error in check mode when the place overlaps a live one.
    void acquire(BufferId buffer, Region place);
    /// Throws Error in check mode when the buffer is not live there. A place without an address is not overwritten.
    void release(BufferId buffer, Region place);
    /// Throws Error when a buffer that is not persistent is still live.
    void expectOnlyPersistent() const;

    Bytes live() const { return m_live; }
    Bytes peak() const { return m_peak; }

private:
    struct Live {
        BufferId buffer;
        Region place;
    };
    std::string where() const;

    int m_device;
    bool m_check;
    Bytes m_persistent = 0;
    Bytes m_live = 0;
    Bytes m_peak = 0;
    std::vector<Live> m_places; ///< check mode only; few at a time, searched linearly
};

} // namespace pipewright
