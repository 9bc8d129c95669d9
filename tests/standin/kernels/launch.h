// SPDX-License-Identifier: GPL-3.0-or-later
// A launch of a GPU kernel as the stand-in sees it. The build turns `kernel<<<…>>>(…)` of an unmodified .cu into a call
// of standin::launch (device.h), which hands one of these to pipewrightStandinLaunch: whoever plays the CUDA runtime
// defines that, and calls runGrid at once or when a stream comes to it. runGrid runs every thread of every block as a
// fibre of the calling thread and ends the program, naming kernel, block and thread, at what a GPU would hang on or get
// wrong: barriers not met by all threads, and shuffles between lanes that are not there.
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
    unsigned firstMultiprocessor = 0, multiprocessors = 1; ///< blocks take them in turns
    std::vector<const void*> pointers;                     ///< of its arguments
    std::vector<const void*> words;                        ///< of arguments that hold more, all that may be addresses
};

/// Why a GPU would refuse this (a grid or block of no or too many threads: cudaErrorInvalidConfiguration); empty: it
/// would not.
std::string whyNot(const Launch& launch);

/// All blocks, one after another, in the order that PIPEWRIGHT_STANDIN_ORDER names: "forwards" (or unset), "backwards",
/// or "shuffled" with a seed behind a colon. Several threads may each run a grid at the same time.
void runGrid(const Launch& launch);

} // namespace standin

/// Called by a launch, on the thread that launches. Not defined here.
extern "C" void pipewrightStandinLaunch(const standin::Launch& launch);
