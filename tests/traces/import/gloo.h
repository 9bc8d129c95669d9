// SPDX-License-Identifier: GPL-3.0-or-later
// A rank's file as PyTorch's profiler writes it of processes on CPUs joined by Gloo, made up from a timeline:
// operators, sends, receives that block, and autograd's arrows.
#pragma once

#include "core/predict/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace pipewright::test {

/// What a block is shorter than in the timeline: the host's own time.
inline constexpr Nanoseconds betweenBlocks = 1'000;

/// What runs the schedule: the runtime that names its blocks, or one of the stock schedules.
enum class GlooSchedule { Named, GPipe, OneForwardOneBackward };

class GlooRank {
public:
    GlooRank(const Program& program, const Timeline& timeline, int rank, GlooSchedule schedule)
        : m_program(program), m_timeline(timeline), m_rank(rank), m_schedule(schedule)
    {
    }

    std::string file(int ranks, int steps, Nanoseconds stepLength, bool profilerSteps = true, bool arrows = true)
    {
        m_arrows = arrows;
        m_last = m_program.stages() - 1;
        for (int step = 0; step < steps; ++step) {
            m_origin = 1'000'000 + step * stepLength;
            m_free = m_origin - 300'000;
            if (profilerSteps)
                slice("user_annotation", fmt::format("ProfilerStep#{}", step + 3), m_origin - 400'000,
                      m_origin + stepLength - 500'000);
            slice("cpu_op", "c10d::barrier", m_free - 20'000, m_free - 10'000);
            std::vector<TaskId> own;
            for (TaskId id = 0; id < m_program.tasks.size(); ++id)
                if (m_program.tasks[id].kind == TaskKind::Compute && m_program.tasks[id].device == m_rank)
                    own.push_back(id);
            std::sort(own.begin(), own.end(),
                      [&](TaskId a, TaskId b) { return m_timeline.start[a] < m_timeline.start[b]; });
            for (const TaskId id : own)
                block(id);
            slice("cpu_op", "aten::div_", m_free + 1'000, m_free + 2'000); // of the gradients, at the end
        }
        return fmt::format(R"({{"schemaVersion":1,"distributedInfo":{{"backend":"gloo","rank":{},"world_size":{}}},)"
                           R"("baseTimeNanoseconds":1700000000000000000,"traceEvents":[{}{{}}]}})",
                           m_rank, ranks, m_events);
    }

private:
    static std::string micros(Nanoseconds ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

    void slice(const char* category, const std::string& name, Nanoseconds from, Nanoseconds to)
    {
        m_events += fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":7,"tid":7,"ts":{},"dur":{},"args":{{}}}},)",
                                category, name, micros(from), micros(to - from));
    }

    void arrowEnd(char phase, int id, Nanoseconds at)
    {
        if (m_arrows)
            m_events +=
                fmt::format(R"({{"ph":"{}","bp":"e","id":{},"cat":"fwdbwd","name":"fwdbwd","pid":7,"tid":7,"ts":{}}},)",
                            phase, id, micros(at));
    }

    /// Posts the receive when the rank is free, waits, works from the block's start in the timeline, and sends.
    void block(TaskId id)
    {
        const Task& task = m_program.tasks[id];
        const bool forward = task.op == Op::F;
        const bool passes = task.op != Op::W;
        const bool receives = passes && task.stage != (forward ? 0 : m_last);
        const bool sends = passes && task.stage != (forward ? m_last : 0);
        const Nanoseconds from = m_origin + m_timeline.start[id], to = m_origin + m_timeline.end[id] - betweenBlocks;
        const std::string number = std::to_string(task.microbatch());
        if (receives) {
            const std::string name = fmt::format("PP:{}RECV_{}{}", task.stage, forward ? 'F' : 'B', number);
            if (m_schedule == GlooSchedule::Named)
                slice("user_annotation", name, m_free, m_free + 200);
            slice("cpu_op", "aten::empty_strided", m_free, m_free + 50);
            slice("cpu_op", "c10d::recv_", m_free + 100, m_free + 150);
            slice("user_annotation", "gloo:recv", m_free + 140, from);
        }
        if (m_schedule == GlooSchedule::Named)
            slice("user_annotation", fmt::format("PP:{}{}{}", task.stage, letter(task.op), number),
                  receives ? m_free + 200 : from, to);
        else if (m_schedule == GlooSchedule::GPipe)
            slice("user_annotation", (forward ? "Forward " : "Backward ") + number, receives ? m_free : from,
                  to + (sends ? 100 : 0));
        // The block begins where the data has come, the first operator a little later.
        const Nanoseconds first = receives && m_schedule != GlooSchedule::OneForwardOneBackward ? from + 30 : from;
        const Nanoseconds middle = (from + to) / 2;
        const std::string name = forward ? "aten::linear" : "autograd::engine::evaluate_function: LinearBackward0";
        slice("cpu_op", name, first, middle);
        slice("cpu_op", forward ? "aten::mm" : "LinearBackward0", first + 5, middle - 5); // inside
        slice("cpu_op", forward ? "aten::add" : "autograd::engine::evaluate_function: AccumulateGrad", middle, to);
        arrowEnd(forward ? 's' : 'f', task.microbatch(), first);
        m_free = to + 10;
        if (sends) {
            if (m_schedule == GlooSchedule::Named)
                slice("user_annotation", fmt::format("PP:{}SEND_{}{}", task.stage, forward ? 'F' : 'B', number), to,
                      to + 90);
            slice("cpu_op", "c10d::send", to, to + 80);
            m_free = to + 100;
        }
    }

    const Program& m_program;
    const Timeline& m_timeline;
    int m_rank = 0, m_last = 0;
    GlooSchedule m_schedule;
    bool m_arrows = true;
    Nanoseconds m_origin = 0, m_free = 0;
    std::string m_events;
};

} // namespace pipewright::test
