// SPDX-License-Identifier: GPL-3.0-or-later
// One pass over the tasks writes slices and flow events, one over the memory samples writes counters. O(tasks + memory
// samples).
#include "core/exchange/chrometrace.h"

#include "core/base/formattedtext.h"
#include "core/exchange/tracetracks.h"
#include "core/json/jsontext.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace pipewright {

namespace {

constexpr int computeThread = 0;

class TraceText {
public:
    /// `first`: the first process number; `note` follows every process's name.
    /// `curve`: source of the memory curves; null: the timeline's own.
    TraceText(const Program& program, const Timeline& timeline, const CurveOf& curve, int first, std::string note,
              const Pieces& to)
        : m_program(program), m_timeline(timeline), m_curve(curve), m_firstProcess(first), m_note(std::move(note)),
          m_buffer(to)
    {
    }

    static std::string head(const std::string& name)
    {
        return "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"title\":" + asciiJsonText(name) + "},\"traceEvents\":[";
    }

    /// The events separated by commas, with a leading one unless `first`.
    void write(bool first)
    {
        m_first = first;
        assignThreads();
        writeNames();
        m_consumer = firstConsumers(m_program);
        for (TaskId t = 0; t < m_program.tasks.size(); ++t)
            if (wasRun(t)) {
                writeSlice(t);
                if (m_program.tasks[t].kind == TaskKind::Transfer)
                    writeFlow(t);
            }
        writeMemory();
        m_buffer.finish();
    }

private:
    bool isBesideMeasured() const { return !m_note.empty() && m_firstProcess == 0; }
    bool wasRun(TaskId t) const { return m_timeline.start[t] != notRun; }

    int deviceOf(TaskId t) const { return m_program.tasks[t].recordedOn(); }

    void assignThreads()
    {
        m_thread.assign(m_program.tasks.size(), computeThread);
        m_rows.resize(m_program.devices.size());
        std::vector<TaskId> moving;
        for (TaskId t = 0; t < m_program.tasks.size(); ++t)
            if (wasRun(t) && isBesideBlocks(m_program.tasks[t].kind))
                moving.push_back(t);
        std::sort(moving.begin(), moving.end(), [&](TaskId a, TaskId b) {
            return std::pair(m_timeline.start[a], a) < std::pair(m_timeline.start[b], b);
        });
        for (const TaskId t : moving)
            m_thread[t] = 1 + static_cast<int>(m_rows[deviceOf(t)].rowFor(m_timeline.start[t], m_timeline.end[t]));
    }

    void beginEvent()
    {
        m_buffer.handOn();
        m_text += m_first ? "\n" : ",\n";
        m_first = false;
    }

    void time(std::string_view key, Nanoseconds value)
    {
        appendFormatted(m_text, "\"{}\":{}.{:03}", key, value / 1000, value % 1000);
    }

    void writeName(std::string_view kind, int device, int thread, const std::string& name, const std::string& more = {})
    {
        beginEvent();
        appendFormatted(m_text, R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":"{}"{}}}}})", kind,
                        process(device), thread, name, more);
    }

    void writeNames()
    {
        for (int device = 0; device < static_cast<int>(m_program.devices.size()); ++device) {
            // For who imports it: a device is a rank, and beside a measured step the predicted one is no recording.
            writeName("process_name", device, 0, fmt::format("device {}{}", device, m_note),
                      fmt::format(R"(,"rank":{}{})", device, isBesideMeasured() ? R"(,"predicted":true)" : ""));
            beginEvent();
            appendFormatted(m_text,
                            R"({{"ph":"M","name":"process_sort_index","pid":{},"tid":0,"args":{{"sort_index":{}}}}})",
                            process(device), m_note.empty() ? device : 2 * device + (m_firstProcess > 0 ? 1 : 0));
            writeName("thread_name", device, computeThread, "compute");
            const int lanes = std::max(1, static_cast<int>(m_rows[device].count()));
            for (int lane = 0; lane < lanes; ++lane)
                writeName("thread_name", device, 1 + lane,
                          lane == 0 ? "transfers" : fmt::format("transfers {}", lane + 1));
        }
    }

    void writeSlice(TaskId t)
    {
        const Task& task = m_program.tasks[t];
        beginEvent();
        appendFormatted(m_text, R"({{"ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},)", m_program.label(t),
                        categoryOf(m_program, task), process(deviceOf(t)), m_thread[t]);
        time("ts", m_timeline.start[t]);
        m_text += ',';
        time("dur", std::max<Nanoseconds>(0, m_timeline.end[t] - m_timeline.start[t]));
        appendFormatted(m_text, R"(,"args":{{"task":{},"stage":{})", t, task.stage);
        if (task.kind == TaskKind::Compute || moves(task.kind))
            appendFormatted(m_text, R"(,"microbatch":{})", task.microbatch());
        m_text += "}}";
    }

    void writeFlowEvent(char phase, TaskId transfer, TaskId slice, Nanoseconds at)
    {
        beginEvent();
        appendFormatted(m_text, R"({{"ph":"{}","name":"{}","cat":"flow","id":{},"pid":{},"tid":{},)", phase,
                        m_program.tasks[transfer].op == Op::F ? "activation" : "gradient",
                        transfer + (m_firstProcess > 0 ? m_program.tasks.size() : 0), process(deviceOf(slice)),
                        m_thread[slice]);
        time("ts", at);
        m_text += phase == 's' ? "}" : R"(,"bp":"e"})";
    }

    /// Producer, transfer, consumer. An arrow belongs to the slice that covers its time, so it leaves the
    /// producer one nanosecond before its end.
    void writeFlow(TaskId t)
    {
        const TaskId producer = m_program.afterData[t], consumer = m_consumer[t];
        const bool begins = producer != none && wasRun(producer);
        const bool ends = consumer != none && wasRun(consumer);
        if (!begins && !ends)
            return;
        if (begins)
            writeFlowEvent('s', t, producer, std::max(m_timeline.start[producer], m_timeline.end[producer] - 1));
        writeFlowEvent(!begins ? 's' : ends ? 't' : 'f', t, t, m_timeline.start[t]);
        if (ends)
            writeFlowEvent('f', t, consumer, m_timeline.start[consumer]);
    }

    void writeMemory()
    {
        const int devices = static_cast<int>(m_curve ? m_program.devices.size() : m_timeline.memory.size());
        for (int device = 0; device < devices; ++device)
            if (m_curve)
                writeMemory(m_curve(device), device);
            else
                writeMemory(m_timeline.memory[static_cast<std::size_t>(device)], device);
    }

    void writeMemory(const std::vector<MemorySample>& samples, int device)
    {
        for (const MemorySample& sample : samples) {
            beginEvent();
            appendFormatted(m_text, R"({{"ph":"C","name":"memory","pid":{},"tid":0,)", process(device));
            time("ts", std::max<Nanoseconds>(0, sample.time));
            appendFormatted(m_text, R"(,"args":{{"bytes":{}}}}})", sample.bytes);
        }
    }

    int process(int device) const { return m_firstProcess + device; }

    const Program& m_program;
    const Timeline& m_timeline;
    const CurveOf& m_curve;
    int m_firstProcess;
    std::string m_note;
    std::vector<int> m_thread;      ///< per task
    std::vector<FreeRows> m_rows;   ///< of transfers, per device
    std::vector<TaskId> m_consumer; ///< per transfer
    PieceBuffer m_buffer;
    std::string& m_text = m_buffer.text;
    bool m_first = true;
};

} // namespace

void chromeTrace(const Program& program, const Timeline& timeline, const std::string& name, const Timeline* measured,
                 const Pieces& to, const CurveOf& curve)
{
    to(TraceText::head(name));
    TraceText(program, timeline, curve, 0, measured ? ", predicted" : "", to).write(true);
    if (measured)
        TraceText(program, *measured, {}, static_cast<int>(program.devices.size()), ", measured", to).write(false);
    to("\n]}\n");
}

} // namespace pipewright
