// SPDX-License-Identifier: GPL-3.0-or-later
// Evaluating a large design takes a few dozen megabytes, again on every drag. Returning them to the system each time
// costs a quarter of the evaluation in page faults, so the allocator keeps them.
#pragma once

namespace pipewright {

/// Call once at the start of a program. Without effect where the allocator has no such setting.
void keepFreedMemory();

/// Returns kept memory to the system, after work with an unusually high peak.
void releaseFreedMemory();

} // namespace pipewright
