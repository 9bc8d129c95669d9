// SPDX-License-Identifier: GPL-3.0-or-later
// A launch of a GPU kernel as the stand-in sees it. The build turns `kernel<<<…>>>(…)` of an unmodified .cu into a call
// of standin::launch (device.h), which passes a Launch to pipewrightStandinLaunch. The stand-in of the CUDA runtime
// defines that function, and calls runGrid at once or when a stream reaches the launch. runGrid runs every thread of
// every block as a fibre of the calling thread. It ends the program, naming kernel, block and thread, at errors where a
// GPU would hang or compute wrong values: barriers that not all threads reach, and shuffles with absent lanes.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace standin {

struct Extent {
    unsigned x = 1, y = 1, z = 1;

    std::size_t count() const { return std::size_t(x) * y * z; }
};

struct Launch {
    const char* kernel; ///< as the source names it, with template arguments
    const char* place;  ///< "file.cu:12"
    Extent grid, block;
    std::size_t sharedBytes = 0;
    void* stream = nullptr;
    std::function<void()> body; ///< one thread of the kernel, its arguments copied at the launch
    unsigned firstMultiprocessor = 0, multiprocessors = 1; ///< blocks are assigned to them round-robin
    std::vector<const void*> pointers;                     ///< of its arguments
    std::vector<const void*> words;                        ///< words of class arguments that may be addresses
};

/// Why a GPU would refuse this launch (a grid or block with no or too many threads: cudaErrorInvalidConfiguration);
/// empty: it would not.
std::string whyNot(const Launch& launch);

/// Runs all blocks, one after another, in the order of PIPEWRIGHT_STANDIN_ORDER: "forwards" (or unset), "backwards", or
/// "shuffled", optionally with ":SEED". Several threads may each run a grid at the same time.
void runGrid(const Launch& launch);

} // namespace standin

/// Called by a launch, on the thread that launches. Not defined here.
extern "C" void pipewrightStandinLaunch(const standin::Launch& launch);
