// SPDX-License-Identifier: GPL-3.0-or-later
// Rewrites each device's blocks into JaxPP's tasks, fusing overlapped pairs, and prints them as Python. O(blocks).
#include "core/exchange/jaxpp.h"

#include "core/base/formattedtext.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace pipewright {

namespace {

bool isAlphanumeric(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) && static_cast<unsigned char>(c) < 0x80;
}

std::string classNameOf(const std::string& name)
{
    std::string result = "Pipewright"; // so that no name is a keyword, or a class of JaxPP's
    bool wordBegins = true;
    for (const char c : name) {
        if (!isAlphanumeric(c)) {
            wordBegins = true;
            continue;
        }
        result += wordBegins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
        wordBegins = false;
    }
    return result;
}

/// The text of a docstring: printable ASCII without quotes and backslashes.
std::string plain(const std::string& text)
{
    std::string result;
    for (const char c : text)
        result += c >= ' ' && c <= '~' && c != '"' && c != '\\' ? c : ' ';
    return result;
}

bool isSplit(const Schedule& schedule)
{
    return std::any_of(schedule.order.begin(), schedule.order.end(), [](const std::vector<Block>& order) {
        return std::any_of(order.begin(), order.end(), [](const Block& b) { return b.op == Op::I; });
    });
}

/// A JaxPP task, which may be fused with the next one into one dispatched unit.
struct JaxppTask {
    Block block;
    bool fusedWithNext = false;
};

/// An input gradient of stage 0 that JaxPP runs later, and the block that follows it in the design.
struct Moved {
    Block block, before;
};

/// The device's blocks with every I of stage 0 directly before its W, and in a schedule with split backwards every B
/// as I and W, since JaxPP splits all stages or none. The tasks of an overlapped pair are fused, also where a B became
/// two. `moved` receives each I that now runs after other blocks.
std::vector<JaxppTask> tasksOf(const std::vector<Block>& order, const std::vector<Overlap>& overlaps, bool split,
                               std::vector<Moved>& moved)
{
    std::vector<JaxppTask> tasks;
    tasks.reserve(order.size());
    std::size_t pairBegin = order.size(); // index in `tasks` of the pair's first task
    for (std::size_t i = 0; i < order.size(); ++i) {
        const Block& block = order[i];
        const bool second = pairBegin < order.size();
        const bool first = !second && i + 1 < order.size()
                           && std::binary_search(overlaps.begin(), overlaps.end(), Overlap{block, order[i + 1]});
        if (first)
            pairBegin = tasks.size();
        if (split && isFullBackward(block.op)) {
            tasks.push_back({{Op::I, block.stage, block.microbatch}});
            tasks.push_back({{Op::W, block.stage, block.microbatch}});
        } else if (block.stage == 0 && block.op == Op::I) {
            const bool together = i + 1 < order.size() && order[i + 1] == Block{Op::W, 0, block.microbatch};
            if (!together)
                moved.push_back({block, order[i + 1]}); // its W follows somewhere
            if (together && second) {                   // the pair's second task is both halves
                tasks.push_back({block});
                tasks.push_back({order[i + 1]});
            }
        } else if (block.stage == 0 && block.op == Op::W) {
            const bool written = !tasks.empty() && tasks.back().block == block;
            if (!written) {
                tasks.push_back({{Op::I, 0, block.microbatch}});
                tasks.push_back({block});
            }
        } else {
            tasks.push_back({block});
        }
        if (second) {
            for (std::size_t t = pairBegin; t + 1 < tasks.size(); ++t)
                tasks[t].fusedWithNext = true;
            pairBegin = order.size();
        }
    }
    return tasks;
}

/// The tasks of one actor as one Python string over several lines; the tasks of a unit are joined by "&".
void addActor(std::string& text, const std::vector<JaxppTask>& tasks)
{
    constexpr std::size_t perLine = 16;
    text += tasks.empty() ? "    (\n        \"\"\n" : "    (\n";
    for (std::size_t i = 0; i < tasks.size();) {
        text += "        \"";
        const std::size_t lineEnd = i + perLine;
        while (i < tasks.size() && (i < lineEnd || tasks[i - 1].fusedWithNext)) {
            text += toString(tasks[i].block);
            text += tasks[i++].fusedWithNext ? '&' : ' ';
        }
        text += "\"\n";
    }
    text += "    ),\n";
}

} // namespace

ExportedText jaxppSchedule(const Design& given)
{
    requireOneReplica(given, "JaxPP");
    ExportedText result;
    const Design design = exportable(given, result.diagnostics);
    leaveOutTransferOrder(design, result.diagnostics);
    const Schedule& schedule = design.schedule;
    const bool split = isSplit(schedule);
    std::vector<Moved> moved;
    std::string actors;
    for (const std::vector<Block>& order : schedule.order)
        addActor(actors, tasksOf(order, schedule.overlaps, split, moved));
    if (!moved.empty())
        result.diagnostics.push_back(
            {Severity::Warning, fmt::format("device {}", schedule.deviceOfStage.front()),
             fmt::format(
                 "JaxPP runs it in another order than the design: {} input gradients of stage 0 are put off until "
                 "their weight gradients ({} runs before {} in the design, and directly before W0.{} in JaxPP)",
                 moved.size(), toString(moved.front().block), toString(moved.front().before),
                 moved.front().block.microbatch),
             "JaxPP runs both halves of stage 0 as one task and rejects a list that separates them; the prediction is "
             "of "
             "the design's order"});
    std::size_t halved = 0;
    for (const std::vector<Block>& order : schedule.order)
        halved += static_cast<std::size_t>(
            std::count_if(order.begin(), order.end(), [&](const Block& b) { return split && isFullBackward(b.op); }));
    if (halved > 0)
        result.diagnostics.push_back(
            {Severity::Warning, "schedule.order",
             fmt::format(
                 "JaxPP runs {} full backwards as two tasks, the input gradient and then the weight gradient, and "
                 "sends the input gradient on between them",
                 halved),
             "JaxPP splits all backwards or none; the prediction sends it on after both"});
    const bool fused = !schedule.overlaps.empty();
    const std::string className = classNameOf(design.name);
    std::string& text = result.text;
    text += fmt::format("\"\"\"Pipewright schedule {}: {} stages on {} actors, {} microbatches.\"\"\"\n\n",
                        plain(design.name), schedule.stages(), schedule.devices(), schedule.microbatches);
    text += "from dataclasses import dataclass, field\n\n";
    text += fmt::format("from jaxpp.schedules import BaseSchedule, {}Task, TaskType\n\n", fused ? "FusedTask, " : "");
    text += fmt::format("MICROBATCHES = {}\n", schedule.microbatches);
    text += fmt::format("ACTOR_OF_STAGE = ({},)\n\n", joined(schedule.deviceOfStage, ", "));
    text += "TYPES = {\n    \"F\": TaskType.FWD,\n    \"B\": TaskType.BWD,\n";
    if (split)
        text += "    \"I\": TaskType.BWD_I,\n    \"W\": TaskType.BWD_W,\n";
    text += "}\n\n# One entry per actor: its tasks in order, each as type, stage and microbatch.\n";
    if (fused)
        text += "# Tasks joined by & are one unit: they are dispatched together, and XLA overlaps what it can.\n";
    text += "TASKS_OF_ACTOR = (\n" + actors + ")\n\n\n";
    text += "def _task(text):\n    stage, microbatch = text[1:].split(\".\")\n";
    text += "    return Task.make(int(stage), int(microbatch), TYPES[text[0]])\n\n\n";
    if (fused) {
        text += "def _unit(text):\n    tasks = [_task(task) for task in text.split(\"&\")]\n";
        text += "    return FusedTask(tasks) if len(tasks) > 1 else tasks[0]\n\n\n";
    }
    text += "@dataclass(eq=True, frozen=True)\n";
    text += fmt::format("class {}(BaseSchedule):\n", className);
    text += fmt::format("    num_stages: int = {}\n", schedule.stages());
    text += fmt::format("    is_partial_bwd: bool = field(default={}, init=False)\n\n", split ? "True" : "False");
    text += "    def __post_init__(self):\n";
    text += fmt::format(
        "        if self.num_stages != {0}:\n            raise ValueError(\"this schedule has {0} stages\")\n\n",
        schedule.stages());
    text += "    @staticmethod\n    def get_num_stages(num_tasks):\n        return len(ACTOR_OF_STAGE)\n\n";
    text += "    def get_mpmd_idx(self, stage_id):\n        return ACTOR_OF_STAGE[stage_id]\n\n";
    text += "    def tasks(self, n_mubatches):\n        if n_mubatches != MICROBATCHES:\n";
    text += "            raise ValueError(f\"this schedule is for {MICROBATCHES} microbatches, not {n_mubatches}\")\n";
    text += fmt::format("        return [[{}(text) for text in tasks.split()] for tasks in TASKS_OF_ACTOR]\n",
                        fused ? "_unit" : "_task");
    return result;
}

} // namespace pipewright
