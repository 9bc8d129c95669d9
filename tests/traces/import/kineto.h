// SPDX-License-Identifier: GPL-3.0-or-later
// A file as PyTorch's profiler writes it, made up from a timeline.
#pragma once

#include "core/predict/timeline.h"

#include <cstdio>
#include <string>

namespace pipewright::test {

/// An event of every kind.
inline const char* const everyPhase = R"({"displayTimeUnit": "ms", "traceEvents": [
            {"args": {"correlation": 5, "device": 2, "stream": 9, "bytes": "1024"}, "ph": "X", "cat": "gpu_memcpy",
             "name": "Memcpy DtoH", "pid": 2, "tid": 9, "ts": "10.5", "dur": 2},
            {"ph": "B", "name": "outer", "pid": 1, "tid": 1, "ts": 1}, {"ph": "B", "name": "inner", "pid": 1, "tid": 1, "ts": 2},
            {"ph": "E", "pid": 1, "tid": 1, "ts": 3}, {"ph": "E", "pid": 1, "tid": 1, "ts": 4.25},
            {"ph": "b", "cat": "io", "id": "0x1", "name": "read", "pid": 1, "tid": 1, "ts": 5},
            {"ph": "b", "cat": "io", "id": "0x2", "name": "write", "pid": 1, "tid": 1, "ts": 6},
            {"ph": "e", "cat": "io", "id": "0x1", "name": "read", "pid": 1, "tid": 1, "ts": 8},
            {"ph": "e", "cat": "io", "id": "0x2", "name": "write", "pid": 1, "tid": 1, "ts": 9},
            {"ph": "i", "s": "t", "name": "here", "pid": "main", "tid": "loop", "ts": 7},
            {"ph": "C", "name": "memory", "pid": 1, "ts": 3, "args": {"used": 5, "free": 2.5}},
            {"ph": "s", "id": 7, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": 2.5},
            {"ph": "f", "bp": "e", "id": 7, "cat": "ac2g", "name": "ac2g", "pid": 2, "tid": 9, "ts": 10.5},
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "worker"}},
            {"ph": "M", "name": "process_sort_index", "pid": 1, "args": {"sort_index": 4}}
        ]})";

/// A rank's part of a pipeline step as PyTorch's profiler writes it: ranges on the host, kernels that run `late`
/// behind them.
inline std::string kineto(const Program& program, const Timeline& timeline, int rank, int ranks, int steps,
                          Nanoseconds stepLength, bool kernels)
{
    std::string text =
        R"({"schemaVersion": 1, "deviceProperties": [{"id": 0}], "distributedInfo": {"backend": "nccl", "rank": )"
        + std::to_string(rank) + R"(, "world_size": )" + std::to_string(ranks)
        + R"(}, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [)";
    int correlation = 1;
    const auto time = [](Nanoseconds ns) {
        char buffer[32];
        std::snprintf(buffer, sizeof buffer, "%lld.%03lld", static_cast<long long>(ns / 1000),
                      static_cast<long long>(ns % 1000));
        return std::string(buffer);
    };
    const auto event = [&](const std::string& cat, const std::string& name, int pid, int tid, Nanoseconds from,
                           Nanoseconds to, const std::string& args) {
        text += R"({"ph": "X", "cat": ")" + cat + R"(", "name": ")" + name + R"(", "pid": )" + std::to_string(pid)
                + R"(, "tid": )" + std::to_string(tid) + R"(, "ts": )" + time(from) + R"(, "dur": )" + time(to - from)
                + R"(, "args": {)" + args + "}},\n";
    };
    for (int step = 0; step < steps; ++step) {
        const Nanoseconds origin = 1'000'000 + step * stepLength;
        event("user_annotation", "ProfilerStep#" + std::to_string(step + 3), 100, 1, origin - 500'000,
              origin + stepLength - 600'000, "");
        for (TaskId id = 0; id < program.tasks.size(); ++id) {
            const Task& task = program.tasks[id];
            if (task.kind != TaskKind::Compute || task.device != rank)
                continue;
            const std::string name = "PP:" + std::to_string(task.stage) + std::string(1, letter(task.op))
                                     + std::to_string(task.microbatch());
            const Nanoseconds from = origin + timeline.start[id], to = origin + timeline.end[id];
            if (!kernels) {
                event("user_annotation", name, 100, 1, from, to, "");
                continue;
            }
            event("user_annotation", name, 100, 1, from - 300'000, from - 100'000, "");
            for (int half = 0; half < 2; ++half) {
                const std::string id2 = R"("correlation": )" + std::to_string(correlation++);
                // Backward kernels are launched by autograd's thread.
                event("cuda_runtime", "cudaLaunchKernel", 100, task.op == Op::F ? 1 : 2, from - 250'000 + half,
                      from - 250'000 + half + 1, id2);
                const Nanoseconds middle = (from + to) / 2;
                event("kernel", half == 0 ? "gemm" : "gelu", 0, 7, half == 0 ? from : middle, half == 0 ? middle : to,
                      id2 + R"(, "device": 0, "stream": 7)");
            }
        }
    }
    text += R"({"ph": "M", "name": "process_name", "pid": 100, "args": {"name": "python"}}]})";
    return text;
}

} // namespace pipewright::test
