// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/torch/torchrecords.h"

#include "core/base/formattedtext.h"
#include "core/design/blockparts.h"
#include "core/json/jsontext.h"
#include "executor/torch/modulefacts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>

namespace pipewright {

namespace {

using Json = nlohmann::json;

constexpr Nanoseconds inFlight = 50'000; ///< a wait shorter than this is only the call itself

[[noreturn]] void noReport(int rank, std::string_view line, std::string_view why)
{
    throw Error(fmt::format("rank {}", rank), fmt::format("{}: {}", why, inQuotes(line)),
                "the pipewright package in this Python is of another version than the program");
}

/// Reads a whole number. Throws out_of_range for fractions and for numbers so large that sums of them could overflow.
template<typename Number>
Number whole(const Json& value)
{
    constexpr std::int64_t most = std::min<std::int64_t>(std::numeric_limits<Number>::max(), std::int64_t{1} << 60);
    const bool fits = value.is_number_unsigned()  ? value.get<std::uint64_t>() <= std::uint64_t{most}
                      : value.is_number_integer() ? value.get<std::int64_t>() >= -most
                                                  : false;
    if (!fits)
        throw std::out_of_range(fmt::format("{} is no whole number of a possible size", jsonText(value)));
    return value.get<Number>();
}

GpuRecord::Kind activityKind(const std::string& kind)
{
    static const std::map<std::string, GpuRecord::Kind> kinds{{"operator", GpuRecord::Kind::Operator},
                                                              {"kernel", GpuRecord::Kind::Kernel},
                                                              {"copy", GpuRecord::Kind::Copy},
                                                              {"set", GpuRecord::Kind::Set},
                                                              {"call", GpuRecord::Kind::Call}};
    const auto found = kinds.find(kind);
    if (found == kinds.end())
        throw std::out_of_range("there is no kind " + inQuotes(kind));
    return found->second;
}

} // namespace

TorchRecords::TorchRecords(const Program& program, RecordSink* sink, int replicas)
    : m_sink(sink), m_ranks(program.devices.size() * static_cast<std::size_t>(replicas))
{
    m_result.backend = "torch";
    m_result.devices = static_cast<int>(program.devices.size());
    m_result.copies = replicas;
    for (const Program::Device& device : program.devices)
        m_result.predictedPeakBytes.push_back(device.peakBytes);
    m_result.clockOffsets.assign(program.devices.size(), 0);
    m_result.clockUncertainties.assign(program.devices.size(), 0);
    for (TaskId id = 0; id < program.tasks.size(); ++id) {
        const Task& task = program.tasks[id];
        m_deviceOf.push_back(task.device);
        m_receiverOf.push_back(task.recordedOn());
        m_producer.push_back(program.afterData[id]);
        if (task.kind == TaskKind::Compute)
            m_tasks[{letter(task.op), task.stage, task.microbatch()}] = id;
        else if (task.kind == TaskKind::Update)
            m_tasks[{'U', task.stage, task.microbatch()}] = id;
        else if (task.kind == TaskKind::Transfer) // a transfer states the stage that made its value
            m_transfers[{letter(task.op), task.stage + (task.op == Op::F ? 1 : -1), task.microbatch()}] = id;
    }
    for (const Program::Device& device : program.devices)
        for (const Instruction& instruction : device.instructions)
            if (instruction.kind == InstructionKind::Gather || instruction.kind == InstructionKind::ReduceGradients) {
                const Task& task = program.tasks[instruction.task];
                m_collectives[{task.kind, task.stage}].push_back(instruction.task);
            }
}

TaskId TorchRecords::taskOf(int rank, const std::string& op, int stage, int microbatch) const
{
    const auto found = op.size() == 1 ? m_tasks.find({op[0], stage, microbatch}) : m_tasks.end();
    if (found == m_tasks.end() || m_deviceOf[found->second] != deviceOf(rank))
        throw Error(fmt::format("rank {}", rank),
                    fmt::format("ran {}{}.{}, which is not its own in this design", op, stage, microbatch),
                    "was the job written for another design?");
    return found->second;
}

void TorchRecords::takeBlocks(int rank, int step, const void* json)
{
    const Json& report = *static_cast<const Json*>(json);
    std::vector<TaskRecord> tasks;
    for (const Json& row : report.at("blocks"))
        tasks.push_back({taskOf(rank, row.at(0), whole<int>(row.at(1)), whole<int>(row.at(2))), step, rank,
                         whole<Nanoseconds>(row.at(3)), whole<Nanoseconds>(row.at(4))});
    const std::vector<TaskRecord> collectives = collectivesOf(rank, step, json);
    if (!isRecorded(rank))
        return;
    Step& known = m_steps[step];
    for (const TaskRecord& task : tasks)
        known.blockEnds[task.task] = task.end;
    for (const Json& row : report.value("waits", Json::array())) {
        const std::string what = row.at(0);
        const auto transfer = m_transfers.find({what == "F" ? 'F' : 'I', whole<int>(row.at(1)), whole<int>(row.at(2))});
        if (transfer == m_transfers.end() || m_receiverOf[transfer->second] != rank)
            throw Error(fmt::format("rank {}", rank),
                        fmt::format("waited for {}, which it does not receive in this design", jsonText(row)),
                        "was the job written for another design?");
        known.waits.push_back({transfer->second, whole<Nanoseconds>(row.at(3)), whole<Nanoseconds>(row.at(4))});
    }
    std::vector<MemoryRecord> memory;
    for (const Json& row : report.value("memory", Json::array()))
        memory.push_back({rank, step, whole<Nanoseconds>(row.at(0)), whole<Bytes>(row.at(1))});
    if (m_sink == nullptr)
        return;
    m_sink->append(tasks);
    m_sink->append(collectives);
    m_sink->append(memory);
    if (const std::vector<GpuRecord> exchanges = exchangesOf(rank, step, json); !exchanges.empty())
        m_sink->append(exchanges);
    m_sink->commit();
}

/// What joined the copies of this rank's stages, as the tasks of the design. None where the design has no such task:
/// its costs say that they take no time and no memory.
std::vector<TaskRecord> TorchRecords::collectivesOf(int rank, int step, const void* json)
{
    std::vector<TaskRecord> records;
    for (const Json& row : static_cast<const Json*>(json)->value("collectives", Json::array())) {
        const bool gathers = row.at(0) == "gather";
        const int stage = whole<int>(row.at(1));
        const Collectives which{gathers ? TaskKind::Gather : TaskKind::ReduceGradients, stage};
        const auto planned = m_collectives.find(which);
        if (planned == m_collectives.end())
            continue;
        std::size_t& seen = m_steps[step].collectives[{rank, which}];
        if (seen == planned->second.size() || m_deviceOf[planned->second[seen]] != deviceOf(rank))
            throw Error(fmt::format("rank {}", rank),
                        fmt::format("{} of stage {} more often than this design",
                                    gathers ? "gathers the parameters" : "sums the gradients", stage),
                        "does the module gather or sum on its own? Otherwise: was the job written for another design?");
        records.push_back(
            {planned->second[seen++], step, rank, whole<Nanoseconds>(row.at(3)), whole<Nanoseconds>(row.at(4))});
    }
    return records;
}

/// Says once of what the design has and a rank did not report, such as sums of a stage without trained parameters.
void TorchRecords::noteMissing(const Step& step)
{
    for (const auto& [which, planned] : m_collectives)
        for (int rank = 0; rank < std::ssize(m_ranks) && !m_missingNoted; ++rank) {
            const auto seen = step.collectives.find({rank, which});
            const std::size_t count = seen == step.collectives.end() ? 0 : seen->second;
            if (m_deviceOf[planned.front()] != deviceOf(rank) || count == planned.size())
                continue;
            m_missingNoted = true;
            m_result.notes.push_back(
                {Severity::Note,
                 fmt::format("rank {}", rank),
                 fmt::format("{} of {} {} of stage {} were seen", count, planned.size(),
                             which.first == TaskKind::Gather ? "gathers" : "sums of gradients", which.second),
                 {}});
        }
}

/// The collectives of a device's replicas, and of stages that share a parameter, under the block in which each began.
std::vector<GpuRecord> TorchRecords::exchangesOf(int rank, int step, const void* json) const
{
    std::vector<GpuRecord> exchanges;
    for (const Json& row : static_cast<const Json*>(json)->value("exchanges", Json::array())) {
        GpuRecord& exchange = exchanges.emplace_back();
        exchange.step = step;
        exchange.kind = GpuRecord::Kind::Part;
        exchange.name = row.at(0).get<std::string>();
        exchange.bytes = whole<Bytes>(row.at(1));
        if (row.at(2).is_string())
            exchange.task = taskOf(rank, row.at(2), whole<int>(row.at(3)), whole<int>(row.at(4)));
        exchange.start = whole<Nanoseconds>(row.at(5));
        exchange.end = whole<Nanoseconds>(row.at(6));
        exchange.device = 0;
        exchange.stream = static_cast<std::int32_t>(PartStream::Communication);
        exchange.toDevice = rank;
    }
    return exchanges;
}

/// The activities that PyTorch's profiler saw, under the blocks that they belong to (pipewright/activities.py).
std::vector<GpuRecord> TorchRecords::activitiesOf(int rank, int step, const void* json) const
{
    const Json& report = *static_cast<const Json*>(json);
    std::vector<TaskId> tasks;
    for (const Json& block : report.at("blocks"))
        tasks.push_back(taskOf(rank, block.at(0), whole<int>(block.at(1)), whole<int>(block.at(2))));
    std::vector<GpuRecord> activities;
    for (const Json& row : report.at("activities")) {
        GpuRecord& activity = activities.emplace_back();
        activity.step = step;
        activity.rank = rank;
        activity.kind = activityKind(row.at(0));
        activity.name = report.at("names").at(static_cast<std::size_t>(whole<int>(row.at(1))));
        if (const int block = whole<int>(row.at(2)); block >= 0) {
            if (static_cast<std::size_t>(block) >= tasks.size())
                throw std::out_of_range(fmt::format("there is no block {}", block));
            activity.task = tasks[static_cast<std::size_t>(block)];
        }
        activity.start = whole<Nanoseconds>(row.at(3));
        activity.end = whole<Nanoseconds>(row.at(4));
        activity.device = whole<std::int32_t>(row.at(5));
        const std::int64_t lane = whole<std::int64_t>(row.at(6));
        activity.thread = lane;
        activity.stream =
            static_cast<std::int32_t>(std::clamp<std::int64_t>(lane, -1, std::numeric_limits<int>::max()));
        activity.correlation = whole<std::uint32_t>(row.at(7));
        activity.bytes = whole<Bytes>(row.at(8));
        if (activity.kind == GpuRecord::Kind::Operator)
            activity.toDevice = rank;
    }
    return activities;
}

void TorchRecords::take(int rank, const std::string& line)
{
    const Json report = tryJsonFromText(line);
    if (!report.is_object())
        noReport(rank, line, "this is no report");
    Rank& from = m_ranks[static_cast<std::size_t>(rank)];
    try {
        if (report.contains("at"))
            from.at = report["at"];
        if (report.contains("hello")) {
            from.here = true;
            from.name = report.value("name", "");
            if (isRecorded(rank)) {
                m_result.clockOffsets[static_cast<std::size_t>(rank)] =
                    whole<Nanoseconds>(report.value("offset", Json(0)));
                m_result.clockUncertainties[static_cast<std::size_t>(rank)] =
                    whole<Nanoseconds>(report.value("uncertainty", Json(0)));
            }
        }
        if (report.contains("note"))
            m_result.notes.push_back({Severity::Note, "module", report["note"].get<std::string>()});
        const Diagnostics found = notesOf(factsOfReport(report));
        m_found.insert(m_found.end(), found.begin(), found.end());
        if (report.contains("step_with_profiler"))
            m_result.recorder.add({.stepWith = whole<Nanoseconds>(report["step_with_profiler"]),
                                   .stepWithout = whole<Nanoseconds>(report.at("step_without_profiler"))});
        if (report.contains("activities")) {
            if (isRecorded(rank) && m_sink != nullptr)
                m_sink->append(activitiesOf(rank, whole<int>(report.at("step")), &report));
        } else if (report.contains("blocks"))
            takeBlocks(rank, whole<int>(report.at("step")), &report);
        if (report.contains("end")) {
            const int number = whole<int>(report.at("step"));
            const Nanoseconds start = whole<Nanoseconds>(report.at("start")),
                              end = whole<Nanoseconds>(report.at("end"));
            Step& step = m_steps[number];
            step.start = step.ended == 0 ? start : std::min(step.start, start);
            step.end = std::max(step.end, end);
            if (const Json loss = report.value("loss", Json()); !loss.is_null()) {
                step.loss = (step.losses == 0 ? 0 : step.loss * step.losses) + reportedNumber(loss);
                step.loss /= ++step.losses; // the mean over the replicas, each with its own rows
            }
            const Json wait = report.value("core_wait", Json());
            const auto ranks = static_cast<Nanoseconds>(m_ranks.size());
            step.coreWait = step.coreWait < 0 || wait.is_null()
                                ? -1
                                : step.coreWait + std::max<Nanoseconds>(0, whole<Nanoseconds>(wait)) / ranks;
            if (++step.ended == ranks) {
                m_result.coreWaits.push_back(step.coreWait);
                m_result.stepTimes.push_back(step.end - step.start);
                m_result.losses.push_back(step.loss);
                if (step.losses > 0)
                    noteLoss(step.loss);
                writeTransfers(number);
                noteMissing(step);
                if (m_sink != nullptr) {
                    m_sink->append(StepRecord{number, step.start, step.end, step.loss, step.coreWait});
                    m_sink->commit();
                }
                m_steps.erase(number);
            }
        }
        if (report.contains("peak") && isRecorded(rank)) {
            m_result.peakBytes.resize(static_cast<std::size_t>(m_result.devices), 0);
            m_result.peakBytes[static_cast<std::size_t>(rank)] = whole<Bytes>(report["peak"]);
        }
        if (report.contains("gradients")) {
            const Json& check = report["gradients"];
            GradientCheck& gradients = m_result.gradients.emplace();
            gradients.reference = check.at("reference");
            gradients.skipped = check.value("skipped", "");
            gradients.bitEqual = check.value("bit_equal", false);
            gradients.maxRelativeError = reportedNumber(check.value("max_relative_error", Json(0.0)));
            gradients.within = check.value("within", 0.0);
            gradients.worst = check.value("worst", "");
        }
        if (report.contains("failed"))
            m_failures.push_back({rank, report.value("where", ""), report["failed"], report.value("hint", ""),
                                  report.value("consequence", false)});
        from.done = from.done || report.value("done", false);
    } catch (const Json::exception& error) {
        noReport(rank, line, error.what());
    } catch (const std::out_of_range& error) {
        noReport(rank, line, error.what());
    }
}

/// Says of the first loss that is no finite number in which step it came.
void TorchRecords::noteLoss(double loss)
{
    if (std::isfinite(loss) || m_lossNoted)
        return;
    m_lossNoted = true;
    m_result.notes.push_back(
        {Severity::Warning, "loss",
         fmt::format("is {} from step {} on", std::isnan(loss) ? "NaN" : "infinite", m_result.losses.size()),
         "the times hold, the training does not: torch.autograd.set_detect_anomaly(True) in your file names the "
         "operation"});
}

Diagnostics TorchRecords::takeFound()
{
    return std::exchange(m_found, {});
}

void TorchRecords::writeTransfers(int number)
{
    const Step& step = m_steps[number];
    std::vector<TaskRecord> seen;
    for (const Wait& wait : step.waits) {
        const auto made = step.blockEnds.find(m_producer[wait.transfer]);
        // The wait shows the arrival if the value was in flight when the wait began, or was made later. Otherwise the
        // value may have been there long before.
        if (made != step.blockEnds.end() && made->second < wait.end
            && (made->second >= wait.start || wait.end - wait.start > inFlight))
            seen.push_back({wait.transfer, number, m_receiverOf[wait.transfer], made->second, wait.end});
    }
    if (m_sink != nullptr)
        m_sink->append(seen);
}

bool TorchRecords::begun() const
{
    return std::all_of(m_ranks.begin(), m_ranks.end(), [](const Rank& rank) { return rank.here; });
}

std::string TorchRecords::placeOf(int rank) const
{
    const Rank& of = m_ranks[static_cast<std::size_t>(rank)];
    return of.done ? "the end" : of.at;
}

std::string TorchRecords::whereRanksAre() const
{
    std::vector<std::string> places;
    for (int rank = 0; rank < static_cast<int>(m_ranks.size()); ++rank)
        places.push_back(fmt::format("rank {} at {}", rank, placeOf(rank)));
    return joined(places, ", ");
}

std::vector<std::string> TorchRecords::deviceNames() const
{
    std::vector<std::string> names;
    for (const Rank& rank : m_ranks)
        names.push_back(rank.name);
    return names;
}

} // namespace pipewright
