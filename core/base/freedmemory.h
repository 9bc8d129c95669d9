// SPDX-License-Identifier: GPL-3.0-or-later
// Evaluating a large design takes a few dozen megabytes, again on every drag. Handing them back to the
// system each time costs a quarter of the evaluation in page faults, so the program keeps them.
#pragma once

namespace pipewright {

/// Call once at the start of a program. Without effect where the allocator has no such setting.
void keepFreedMemory();

/// Hands back what is kept at the moment, after work that took far more than what follows will.
void releaseFreedMemory();

} // namespace pipewright
