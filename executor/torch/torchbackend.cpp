// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/torch/torchbackend.h"

#include "core/base/formattedtext.h"
#include "core/base/inputfile.h"
#include "core/base/median.h"
#include "core/base/textfile.h"
#include "core/program/compile.h"
#include "executor/run/runtrace.h"
#include "executor/torch/python.h"
#include "executor/torch/torchcopies.h"
#include "executor/torch/torchrecords.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>

namespace pipewright {

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr auto waitForReasons = std::chrono::seconds(2); ///< after the first failure: other ranks may report its cause
constexpr Nanoseconds leastForStart = 300'000'000'000;   ///< importing torch from a cold disk takes long

std::vector<ProcessToStart> processesOf(const TorchOptions& options, int ranks, const RunFolder& folder)
{
    std::vector<ProcessToStart> processes;
    for (int rank = 0; rank < ranks; ++rank) {
        ProcessToStart process =
            pythonProcess(options.python, "pipewright.run",
                          {folder.file("job.json"), "--record", "fd:3", "--meet", folder.file("meet")});
        for (const char* name : {"RANK", "LOCAL_RANK"})
            process.environment.emplace_back(name, std::to_string(rank));
        process.environment.emplace_back("WORLD_SIZE", std::to_string(ranks));
        if (std::getenv("GLOO_SOCKET_IFNAME") == nullptr) // all are on this machine, whatever its name resolves to
            process.environment.emplace_back("GLOO_SOCKET_IFNAME", "lo");
        processes.push_back(std::move(process));
    }
    return processes;
}

/// The trace, its program, and the reports that fill it.
struct Recording {
    Recording(const Design& design, const TorchOptions& options)
        : program(compile(design.schedule, design.costs, design.dataflow))
    {
        if (!options.trace.empty()) {
            TraceHeader header{"torch", options.syntheticStages ? "synthetic" : "module", {}, 0};
            for (std::size_t device = 0; device < program.devices.size(); ++device)
                header.deviceNames.push_back(fmt::format("rank {}", device));
            trace.emplace(options.trace, options.overwriteTrace, design, program, std::move(header), options.tell);
        }
        records.emplace(program, trace ? &*trace : nullptr, copiesOf(design, options));
        records->result().maths = options.syntheticStages ? "synthetic" : "module";
        records->result().trace = options.trace;
    }

    RunResult finish()
    {
        RunResult& result = records->result();
        if (!result.gradients) {
            GradientCheck& none = result.gradients.emplace();
            none.reference = "whole-module";
            none.skipped = result.maths == "synthetic" ? "stages that take the design's times have no mathematics"
                                                       : "it was not asked for";
        }
        if (trace)
            trace->finish(result, result.peakBytes);
        return std::move(result);
    }

    Program program;
    std::optional<RunTrace> trace;
    std::optional<TorchRecords> records;
};

/// For a run that failed: how much is in its trace.
std::string keptText(const TorchRecords& records)
{
    return records.stepsDone() > 0
               ? fmt::format("; the trace holds {} step{}", records.stepsDone(), records.stepsDone() == 1 ? "" : "s")
               : std::string();
}

/// Returns whether the last line is incomplete, as after a kill; that line is left out. Throws Error for any other
/// fault.
bool takeFile(TorchRecords& records, int rank, const std::string& path)
{
    InputFile file(path);
    std::string line, next;
    for (bool more = file.readLine(line); more; std::swap(line, next)) {
        more = file.readLine(next);
        if (!more && !line.ends_with('}'))
            return true;
        records.take(rank, line);
    }
    return false;
}

/// Throws the cause: the first failure that is not a consequence of another one, else a rank that died without a
/// report, else the first failure.
[[noreturn]] void throwFailure(const TorchRecords& records, const std::vector<std::pair<int, int>>& ended)
{
    const std::string kept = keptText(records);
    const auto asError = [&](const RankFailure& failure) {
        return Error(failure.where.empty() ? fmt::format("rank {}", failure.rank)
                                           : fmt::format("rank {}, {}", failure.rank, failure.where),
                     failure.what + kept, failure.hint);
    };
    const auto isOwn = [](const RankFailure& failure) { return !failure.consequence; };
    const std::vector<RankFailure>& failures = records.failures();
    if (const auto own = std::find_if(failures.begin(), failures.end(), isOwn); own != failures.end())
        throw asError(*own);
    for (const auto& [rank, status] : ended)
        if (std::none_of(failures.begin(), failures.end(),
                         [rank = rank](const RankFailure& failure) { return failure.rank == rank; }))
            throw Error(fmt::format("rank {}", rank), "the process " + endText(status) + kept,
                        "what it printed last may say why");
    throw asError(failures.front());
}

class Supervision {
public:
    Supervision(const TorchOptions& options, Recording& recording, RankProcesses& processes)
        : m_options(options), m_records(*recording.records), m_processes(processes), m_heard(now())
    {
    }

    /// Runs until all ranks are done. Throws Error when the run failed; returns when it was cancelled.
    void run()
    {
        while (m_processes.anyRuns()) {
            for (const ProcessEvent& event : m_processes.wait())
                take(event);
            if (m_options.cancel != nullptr && m_options.cancel->load()) {
                m_processes.end();
                m_records.result().cancelled = true;
                return;
            }
            if (failed() && !m_failedAt)
                m_failedAt = now();
            if (m_failedAt && now() - *m_failedAt > waitForReasons)
                break;
            if (!m_failedAt)
                checkDeadline();
        }
        m_processes.end();
        if (failed())
            throwFailure(m_records, m_badEnds);
    }

private:
    static SteadyTime now() { return std::chrono::steady_clock::now(); }
    bool failed() const { return !m_records.failures().empty() || !m_badEnds.empty(); }

    void take(const ProcessEvent& event)
    {
        if (event.ended) {
            if (event.status != 0 || !m_records.isDone(event.process))
                m_badEnds.emplace_back(event.process, event.status);
            return;
        }
        m_heard = now();
        const int before = m_records.stepsDone();
        m_records.take(event.process, event.line);
        if (Diagnostics found = m_records.takeFound(); !found.empty() && m_options.tell)
            m_options.tell(found); // in front of everything else
        if (m_records.stepsDone() > before && m_options.progress) {
            const RunResult& result = m_records.result();
            const int done = m_records.stepsDone();
            m_options.progress({static_cast<double>(done) / m_options.steps, done, result.losses.back(),
                                result.stepTimes.back(), (m_options.steps - done) * medianOf(result.stepTimes)});
        }
    }

    void checkDeadline()
    {
        const Nanoseconds limit = m_records.begun() ? m_options.deadline : std::max(m_options.deadline, leastForStart);
        if (now() - m_heard < std::chrono::nanoseconds(limit))
            return;
        const std::string where = m_records.whereRanksAre();
        m_processes.end();
        throw Error("deadline", fmt::format("nothing was heard for {}: {}", formatDuration(limit), where),
                    "a rank hangs, or needs longer: give --deadline T");
    }

    const TorchOptions& m_options;
    TorchRecords& m_records;
    RankProcesses& m_processes;
    SteadyTime m_heard;
    std::optional<SteadyTime> m_failedAt;
    std::vector<std::pair<int, int>> m_badEnds; ///< rank and status
};

} // namespace

RunResult runWithTorch(const Design& design, const TorchOptions& options)
{
    requireModuleFile(options.module);
    Diagnostics notes;
    const std::string job = torchJob(design, options, notes);
    const RunFolder folder;
    writeFileAtomically(folder.file("job.json"), job, false);
    const std::vector<ProcessToStart> wanted =
        processesOf(options, design.schedule.devices() * copiesOf(design, options), folder);
    Recording recording(design, options);
    RunResult& result = recording.records->result();
    result.notes = std::move(notes);
    RankProcesses processes(wanted);
    Supervision(options, recording, processes).run();
    return result.cancelled ? std::move(result) : recording.finish();
}

RunResult collectTorchRun(const Design& design, const std::string& folder, const TorchOptions& options)
{
    Diagnostics notes;
    torchJob(design, options, notes);
    Recording recording(design, options);
    TorchRecords& records = *recording.records;
    std::vector<std::string> unfinished;
    for (int rank = 0; rank < design.schedule.devices() * copiesOf(design, options); ++rank) {
        const std::string path = fmt::format("{}/rank{}.jsonl", folder, rank);
        if (!pathExists(path)) {
            unfinished.push_back(fmt::format("rank {} has written nothing ({} is missing)", rank, path));
            continue;
        }
        const bool isCut = takeFile(records, rank, path);
        if (!records.isDone(rank))
            unfinished.push_back(fmt::format("rank {} is at {}{}", rank, records.placeOf(rank),
                                             isCut ? ", amid a line of its report" : ""));
    }
    if (!records.failures().empty())
        throwFailure(records, {});
    const Diagnostics found = records.takeFound();
    records.result().notes.insert(records.result().notes.begin(), found.begin(), found.end());
    if (!unfinished.empty())
        throw Error(folder, fmt::format("the run did not end: {}{}", joined(unfinished, ", "), keptText(records)),
                    "wait if it still runs; else these ranks were ended from outside, which what they printed or the "
                    "system's log may explain (a signal, too little memory)");
    return recording.finish();
}

} // namespace pipewright
