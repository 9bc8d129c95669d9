// SPDX-License-Identifier: GPL-3.0-or-later
// What the stand-in machine is (GPUs, memory, driver version, faults to inject), and what was done with it: calls and
// faults counted, and things still held, written as JSON when the process ends. Settings come from the environment:
// PIPEWRIGHT_STANDIN_GPUS, _MULTIPROCESSORS, _CAPABILITY ("9.0"), _MEMORY (bytes), _DRIVER (13000), _PEERS (0: none),
// _SEED, _DELAY (most microseconds that a stream dawdles before an operation), _REPORT (a file: ".PID" is appended),
// _FAIL (a list by commas of WHAT:NUMBER: the NUMBERth of allocate, launch (of the program's own kernels), product,
// green, cupti fails; untimed, a record has no time; lost, a kernel takes its GPU along; from that one on: wrong,
// products are wrong; nccl, no operation of NCCL ends; overlap, slices are not apart; nowait, streams do not wait for
// events; linger, a call of NCCL stays until another thread calls with its communicator).
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

/// One more of that kind in the report.
void count(const std::string& what, long number = 1);
/// The largest value there was.
void atMost(const std::string& what, long number);
/// Things that the process has and should give back: the report says how many are left.
void hold(const std::string& what, long number);
/// What NVIDIA's documentation forbids or leaves undefined; `rule` is where that stands. A test fails on any of these.
void broken(const std::string& what, const char* rule);
/// Whether this is the one that was to fail.
bool failsNow(const std::string& what);
/// Whether it is that one or a later one.
bool failsFromNow(const std::string& what);
/// Whether that one has come.
bool failed(const std::string& what);

} // namespace standin

/// For who has these libraries in its own process: the report so far, until the thread asks again, and to begin it
/// anew. What is held stays so.
extern "C" const char* standinReport();
extern "C" void standinForget();
