// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/runtrace.h"

#include "executor/runtime/steadyclock.h"

#include <chrono>
#include <utility>

namespace pipewright {

namespace {

/// `header` with the wall-clock time at which the monotonic clock was zero.
TraceHeader withClock(TraceHeader header)
{
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    header.wallClockNs = std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count() - steadyNow();
    return header;
}

} // namespace

std::size_t recordsPerStep(const Program& program)
{
    std::size_t most = 0;
    for (const Program::Device& device : program.devices)
        most = std::max(most, device.instructions.size());
    return 2 * most + 1; // an instruction may begin and end buffers
}

RunTrace::RunTrace(const std::string& path, bool overwrite, const Design& design, const Program& program,
                   TraceHeader header, std::function<void(const Diagnostics&)> tell)
    : m_path(path), m_writer(path, design, program, withClock(std::move(header)), overwrite), m_tell(std::move(tell))
{
}

template<typename Action>
void RunTrace::attempt(const Action& action, std::size_t records)
{
    if (m_fault) {
        m_dropped += static_cast<std::int64_t>(records);
        return;
    }
    m_pending += static_cast<std::int64_t>(records);
    try {
        action();
    } catch (const Error& error) {
        m_fault = error.diagnostics().front();
        m_dropped += std::exchange(m_pending, 0);
        if (m_tell) {
            Diagnostic said = *m_fault;
            said.what += "; the run goes on without it";
            m_tell({said});
        }
    }
}

void RunTrace::append(const std::vector<TaskRecord>& records)
{
    attempt([&] { m_writer.append(records); }, records.size());
}

void RunTrace::append(const std::vector<MemoryRecord>& records)
{
    attempt([&] { m_writer.append(records); }, records.size());
}

void RunTrace::append(const StepRecord& record)
{
    attempt([&] { m_writer.append(record); }, 1);
}

void RunTrace::append(const std::vector<GpuRecord>& records)
{
    attempt([&] { m_writer.append(records); }, records.size());
}

void RunTrace::commit()
{
    attempt(
        [&] {
            m_writer.commit();
            m_pending = 0;
        },
        0);
}

void RunTrace::check()
{
    attempt([&] { m_writer.check(); }, 0);
}

void RunTrace::finish(RunResult& result, const std::vector<Bytes>& peakBytes)
{
    result.droppedRecords += m_dropped;
    if (!result.cancelled)
        attempt([&] { m_writer.finish(peakBytes, result.droppedRecords, result.toJson()); }, 0);
    if (m_fault)
        result.traceFault = m_fault->what;
}

} // namespace pipewright
