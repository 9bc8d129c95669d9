// SPDX-License-Identifier: GPL-3.0-or-later
// Identifies a process so that another one on the same machine can tell whether it still runs: the process number may
// be reused, but not with the same start time.
#pragma once

#include <cstdint>

namespace pipewright {

struct ProcessIdentity {
    std::int64_t process = 0;
    std::int64_t machine = 0; ///< equal on the same machine since its last start, in the same process namespace
    std::int64_t born = 0;    ///< start time, in the kernel's ticks
};

ProcessIdentity ownIdentity();
/// For a process on this machine.
bool isRunning(const ProcessIdentity& identity);

/// This process gets `signal` when `parent`, which started it, ends; at once when it has already ended.
void endWithParent(int signal, int parent);

} // namespace pipewright
