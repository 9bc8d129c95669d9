// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/dock/steprows.h"

#include "core/program/replicasums.h"
#include "core/schedule/edits.h"
#include "gui/widgets/words.h"

#include <QCoreApplication>

#include <algorithm>

namespace pipewright {

namespace {

QString words(const char* text)
{
    return QCoreApplication::translate("StepRows", text);
}

/// When a task runs; `known` is false in a recording that lacks it.
struct Times {
    Nanoseconds start = 0, end = 0;
    bool known = false;
};

Times timesOf(const Timeline& timeline, TaskId task)
{
    if (task >= timeline.start.size() || timeline.start[task] == notRun)
        return {};
    return {timeline.start[task], timeline.end[task], true};
}

/// A column of a time that may not be known: as "–", sorted first.
StepColumn timeColumn(const char* title, const char* tip,
                      std::function<std::optional<Nanoseconds>(std::size_t, const Timeline&)> value)
{
    StepColumn column;
    column.title = words(title);
    column.tip = words(tip);
    column.timed = true;
    column.text = [value](std::size_t row, const Timeline& timeline) {
        const std::optional<Nanoseconds> time = value(row, timeline);
        return time ? durationText(*time) : QStringLiteral("–");
    };
    column.key = [value](std::size_t row, const Timeline& timeline) {
        return static_cast<double>(value(row, timeline).value_or(-1));
    };
    return column;
}

struct Transfers {
    std::shared_ptr<const Prediction> prediction;
    std::shared_ptr<const Design> design;
    std::vector<TaskId> tasks;
    Bytes largest = 0; ///< that one of them moves: gives the unit

    const Task& task(std::size_t row) const { return prediction->program.tasks[tasks[row]]; }
    /// Nothing where the prediction does not keep what is moved.
    std::optional<Bytes> bytes(std::size_t row) const
    {
        const Program& program = prediction->program;
        return program.operands.empty() ? std::nullopt : std::optional(movedBytes(program, tasks[row]));
    }
    /// From when what it moves was there until it began.
    std::optional<Nanoseconds> waited(std::size_t row, const Timeline& timeline) const
    {
        const TaskId made = prediction->program.afterData[tasks[row]];
        const Times transfer = timesOf(timeline, tasks[row]);
        const Times maker = made == none ? Times{} : timesOf(timeline, made);
        return transfer.known && maker.known ? std::optional(std::max<Nanoseconds>(0, transfer.start - maker.end))
                                             : std::nullopt;
    }
};

/// The passes of a microbatch through one copy of the pipeline.
struct Microbatches {
    std::shared_ptr<const Prediction> prediction;
    std::vector<std::vector<TaskId>> tasks; ///< per row
    int microbatches = 1;

    struct Sums {
        Nanoseconds begin = 0, backward = -1, end = 0, computing = 0;
        bool known = false;
    };
    Sums sums(std::size_t row, const Timeline& timeline) const
    {
        Sums sums;
        for (const TaskId task : tasks[row]) {
            const Times times = timesOf(timeline, task);
            if (!times.known)
                continue;
            sums.begin = sums.known ? std::min(sums.begin, times.start) : times.start;
            sums.end = std::max(sums.end, times.end);
            sums.computing += times.end - times.start;
            sums.known = true;
            const Op op = prediction->program.tasks[task].op;
            if ((op == Op::B || op == Op::I) && (sums.backward < 0 || times.start < sums.backward))
                sums.backward = times.start;
        }
        return sums;
    }
};

} // namespace

StepRows transferRows(const Document& document)
{
    auto transfers = std::make_shared<Transfers>();
    transfers->prediction = document.sharedPrediction();
    transfers->design = document.sharedDesign();
    const Program& program = transfers->prediction->program;
    for (TaskId task = 0; task < program.tasks.size(); ++task)
        if (program.tasks[task].kind == TaskKind::Transfer)
            transfers->tasks.push_back(task);
    for (std::size_t row = 0; row < transfers->tasks.size(); ++row)
        transfers->largest = std::max(transfers->largest, transfers->bytes(row).value_or(0));
    StepRows rows;
    rows.count = transfers->tasks.size();
    rows.held = transfers;
    const Transfers* const of = transfers.get();
    rows.columns.push_back(timeColumn("starts", "When it begins, from the beginning of the step",
                                      [of](std::size_t row, const Timeline& timeline) -> std::optional<Nanoseconds> {
                                          const Times times = timesOf(timeline, of->tasks[row]);
                                          return times.known ? std::optional(times.start) : std::nullopt;
                                      }));
    rows.columns.push_back({words("of"), words("The block whose result is moved"),
                            [of](std::size_t row, const Timeline&) { return blockText(of->task(row).block()); },
                            [of](std::size_t row, const Timeline&) {
                                const Task& task = of->task(row);
                                return (double(task.microbatch()) * 2 + (task.op == Op::F ? 0 : 1)) * 65536
                                       + task.stage;
                            }});
    const auto device = [&](const char* title, auto end) {
        rows.columns.push_back(
            {words(title),
             {},
             [of, end](std::size_t row, const Timeline&) { return deviceLabel(*of->design, end(of->task(row))); },
             [of, end](std::size_t row, const Timeline&) { return double(end(of->task(row))); }});
    };
    device("from", [](const Task& task) { return task.device; });
    device("to", [](const Task& task) { return task.destination(); });
    rows.columns.push_back({words("size"), words("Predicted from the model's shapes"),
                            [of](std::size_t row, const Timeline&) {
                                const std::optional<Bytes> bytes = of->bytes(row);
                                return bytes ? sizeAmong(*bytes, of->largest) : QStringLiteral("–");
                            },
                            [of](std::size_t row, const Timeline&) { return double(of->bytes(row).value_or(-1)); }});
    rows.columns.push_back(timeColumn("takes", "From its beginning to its end",
                                      [of](std::size_t row, const Timeline& timeline) -> std::optional<Nanoseconds> {
                                          const Times times = timesOf(timeline, of->tasks[row]);
                                          return times.known ? std::optional(times.end - times.start) : std::nullopt;
                                      }));
    rows.columns.push_back(
        timeColumn("waited",
                   "From when its value was computed until it began: for its turn among its device's transfers, or for "
                   "the link",
                   [of](std::size_t row, const Timeline& timeline) { return of->waited(row, timeline); }));
    rows.blocks = [of](std::size_t row) -> std::vector<Block> {
        Block block = of->task(row).block();
        if (find(of->design->schedule, block).device < 0 && block.op == Op::I)
            block.op = Op::B; // the backward in one piece
        return find(of->design->schedule, block).device < 0 ? std::vector<Block>() : std::vector{block};
    };
    return rows;
}

StepRows microbatchRows(const Document& document)
{
    auto passes = std::make_shared<Microbatches>();
    passes->prediction = document.sharedPrediction();
    const Schedule& schedule = document.design().schedule;
    passes->microbatches = std::max(1, schedule.microbatches);
    const bool copies = schedule.replicas() > 1;
    std::vector<std::vector<TaskId>> all(static_cast<std::size_t>(passes->microbatches * schedule.replicas()));
    const Program& program = passes->prediction->program;
    for (TaskId id = 0; id < program.tasks.size(); ++id) {
        const Task& task = program.tasks[id];
        if (task.kind != TaskKind::Compute || task.op == Op::U)
            continue;
        const auto row = static_cast<std::size_t>(task.replica * passes->microbatches + task.microbatch());
        if (row < all.size())
            all[row].push_back(id);
    }
    // With several copies, microbatches may be split between them: rows without blocks are left out.
    std::erase_if(all, [](const std::vector<TaskId>& tasks) { return tasks.empty(); });
    passes->tasks = std::move(all);
    StepRows rows;
    rows.count = passes->tasks.size();
    rows.held = passes;
    const Microbatches* const of = passes.get();
    const auto first = [of](std::size_t row) -> const Task& {
        return of->prediction->program.tasks[of->tasks[row].front()];
    };
    rows.columns.push_back({words("microbatch"),
                            {},
                            [first, copies](std::size_t row, const Timeline&) {
                                const Task& task = first(row);
                                return copies ? words("%1 of copy %2").arg(task.microbatch()).arg(task.replica)
                                              : QString::number(task.microbatch());
                            },
                            [of, first](std::size_t row, const Timeline&) {
                                return double(first(row).replica) * of->microbatches + first(row).microbatch();
                            }});
    using Sums = Microbatches::Sums;
    const auto column = [&](const char* title, const char* tip, auto value) {
        rows.columns.push_back(timeColumn(
            title, tip, [of, value](std::size_t row, const Timeline& timeline) -> std::optional<Nanoseconds> {
                const Sums sums = of->sums(row, timeline);
                const Nanoseconds time = sums.known ? value(sums) : -1;
                return time < 0 ? std::nullopt : std::optional(time);
            }));
    };
    column("begins", "Its first block's start", [](const Sums& sums) { return sums.begin; });
    column("turns back", "Its first backward block's start", [](const Sums& sums) { return sums.backward; });
    column("ends", "Its last block's end", [](const Sums& sums) { return sums.end; });
    column("in flight", "From its first block's start to its last block's end",
           [](const Sums& sums) { return sums.end - sums.begin; });
    column("computing", "The time of all its blocks together", [](const Sums& sums) { return sums.computing; });
    rows.blocks = [of](std::size_t row) {
        std::vector<Block> blocks;
        for (const TaskId task : of->tasks[row])
            blocks.push_back(of->prediction->program.tasks[task].block());
        return blocks;
    };
    return rows;
}

} // namespace pipewright
