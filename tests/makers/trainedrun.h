// SPDX-License-Identifier: GPL-3.0-or-later
// Two steps of training on the host's threads, with buffers that must not overlap, and released ones overwritten.
#pragma once

#include "executor/run/run.h"

namespace pipewright::test {

inline RunResult trained(const Design& design)
{
    RunOptions options;
    options.steps = 2;
    options.maths = RunOptions::Maths::Training;
    options.runtime.checkMemory = true;
    return run(design, options);
}

} // namespace pipewright::test
