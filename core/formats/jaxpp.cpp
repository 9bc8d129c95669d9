// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/formats/jaxpp.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace pipewright {

namespace {

bool isAlphanumeric(char c) { return std::isalnum(static_cast<unsigned char>(c)) && static_cast<unsigned char>(c) < 0x80; }

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

/// The text of a docstring: printable ASCII, and without what could end it.
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

/// The device's blocks with every I of stage 0 directly before its W, and in a schedule with split
/// backwards every B as I and W, since JaxPP splits all stages or none.
std::vector<Block> tasksOf(const std::vector<Block>& order, bool split, int& moved)
{
    std::vector<Block> tasks;
    tasks.reserve(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        const Block& block = order[i];
        if (split && block.op == Op::B) {
            tasks.push_back({Op::I, block.stage, block.microbatch});
            tasks.push_back({Op::W, block.stage, block.microbatch});
        } else if (block.stage == 0 && block.op == Op::I) {
            const bool together = i + 1 < order.size() && order[i + 1] == Block{Op::W, 0, block.microbatch};
            moved += !together;
        } else if (block.stage == 0 && block.op == Op::W) {
            tasks.push_back({Op::I, 0, block.microbatch});
            tasks.push_back(block);
        } else {
            tasks.push_back(block);
        }
    }
    return tasks;
}

/// The tasks of one actor as one Python string over several lines.
void addActor(std::string& text, const std::vector<Block>& tasks)
{
    constexpr std::size_t perLine = 16;
    text += tasks.empty() ? "    (\n        \"\"\n" : "    (\n";
    for (std::size_t i = 0; i < tasks.size(); i += perLine) {
        text += "        \"";
        for (std::size_t k = i; k < std::min(i + perLine, tasks.size()); ++k) {
            text += toString(tasks[k]);
            text += ' ';
        }
        text += "\"\n";
    }
    text += "    ),\n";
}

} // namespace

ExportedText jaxppSchedule(const Design& design)
{
    requireOneReplica(design, "JaxPP");
    requireValid(design);
    ExportedText result;
    result.diagnostics = warnAboutUnexported(design);
    const Schedule& schedule = design.schedule;
    const bool split = isSplit(schedule);
    int moved = 0;
    std::string actors;
    for (const std::vector<Block>& order : schedule.order)
        addActor(actors, tasksOf(order, split, moved));
    if (moved > 0)
        result.diagnostics.push_back({Severity::Warning, "stage 0",
                                      fmt::format("{} input gradients are written next to their weight gradients", moved),
                                      "JaxPP runs both halves of stage 0 as one task and rejects a list that separates them"});
    if (!schedule.overlaps.empty())
        result.diagnostics.push_back({Severity::Warning, "schedule.overlaps",
                                      fmt::format("{} overlapped pairs are written one after the other", schedule.overlaps.size()),
                                      "XLA may still overlap what does not depend on each other"});
    const std::string className = classNameOf(design.name);
    std::string& text = result.text;
    text += fmt::format("\"\"\"Pipewright schedule {}: {} stages on {} actors, {} microbatches.\"\"\"\n\n", plain(design.name),
                        schedule.stages(), schedule.devices(), schedule.microbatches);
    text += "from dataclasses import dataclass, field\n\n";
    text += "from jaxpp.schedules import BaseSchedule, Task, TaskType\n\n";
    text += fmt::format("MICROBATCHES = {}\n", schedule.microbatches);
    text += fmt::format("ACTOR_OF_STAGE = ({},)\n\n", fmt::join(schedule.deviceOfStage, ", "));
    text += "TYPES = {\n    \"F\": TaskType.FWD,\n    \"B\": TaskType.BWD,\n";
    if (split)
        text += "    \"I\": TaskType.BWD_I,\n    \"W\": TaskType.BWD_W,\n";
    text += "}\n\n# One entry per actor: its tasks in order, each as type, stage and microbatch.\n";
    text += "TASKS_OF_ACTOR = (\n" + actors + ")\n\n\n";
    text += "def _task(text):\n    stage, microbatch = text[1:].split(\".\")\n";
    text += "    return Task.make(int(stage), int(microbatch), TYPES[text[0]])\n\n\n";
    text += "@dataclass(eq=True, frozen=True)\n";
    text += fmt::format("class {}(BaseSchedule):\n", className);
    text += fmt::format("    num_stages: int = {}\n", schedule.stages());
    text += fmt::format("    is_partial_bwd: bool = field(default={}, init=False)\n\n", split ? "True" : "False");
    text += "    def __post_init__(self):\n";
    text += fmt::format("        if self.num_stages != {0}:\n            raise ValueError(\"this schedule has {0} stages\")\n\n", schedule.stages());
    text += "    @staticmethod\n    def get_num_stages(num_tasks):\n        return len(ACTOR_OF_STAGE)\n\n";
    text += "    def get_mpmd_idx(self, stage_id):\n        return ACTOR_OF_STAGE[stage_id]\n\n";
    text += "    def tasks(self, n_mubatches):\n        if n_mubatches != MICROBATCHES:\n";
    text += "            raise ValueError(f\"this schedule is for {MICROBATCHES} microbatches, not {n_mubatches}\")\n";
    text += "        return [[_task(text) for text in tasks.split()] for tasks in TASKS_OF_ACTOR]\n";
    return result;
}

} // namespace pipewright
