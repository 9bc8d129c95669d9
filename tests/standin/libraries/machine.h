// SPDX-License-Identifier: GPL-3.0-or-later
// Properties of the stand-in machine (GPUs, memory, driver version, faults to inject), and a report of its use: counts
// of calls and violations, and resources that are still held, written as JSON when the process ends. Settings come from
// the environment: PIPEWRIGHT_STANDIN_GPUS, _MULTIPROCESSORS, _CAPABILITY ("9.0"), _MEMORY (bytes), _DRIVER (13000),
// _PEERS (0: none), _SEED, _DELAY (most microseconds that a stream delays an operation), _REPORT (a file: ".PID" is
// appended), _FAIL (a list by commas of WHAT:NUMBER: the NUMBERth of allocate, launch (of the program's own kernels),
// product, green, cupti fails; untimed, a record has no time; lost, a kernel takes its GPU along; from that one on:
// wrong, products are wrong; nccl, no operation of NCCL ends; overlap, slices are not apart; nowait, streams do not
// wait for events; linger, a call of NCCL stays until another thread calls with its communicator).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace standin {

struct Settings {
    int gpus = 1, multiprocessors = 132, major = 9, minor = 0, driver = 13000;
    bool peers = true;
    std::size_t memory = std::size_t{8} << 30;
    std::uint64_t seed = 1;
    int delay = 50;
    std::string report;
    std::map<std::string, long> fail;
};
const Settings& settings();

/// Adds to a count in the report.
void count(const std::string& what, long number = 1);
/// Records the largest value.
void atMost(const std::string& what, long number);
/// Counts resources that the process holds and must release: the report says how many are left.
void hold(const std::string& what, long number);
/// Reports a violation: something that NVIDIA's documentation forbids or leaves undefined, with its place in `rule`.
/// Tests fail on any of these.
void broken(const std::string& what, const char* rule);
/// Counts a try, and returns whether it is the one that is to fail.
bool failsNow(const std::string& what);
/// Counts a try, and returns whether it is that one or a later one.
bool failsFromNow(const std::string& what);
/// Whether that try has happened.
bool failed(const std::string& what);

} // namespace standin

/// For programs with these libraries in their own process. standinReport() returns the report so far, valid until the
/// thread's next call; standinForget() clears it, except for held resources.
extern "C" const char* standinReport();
extern "C" void standinForget();
