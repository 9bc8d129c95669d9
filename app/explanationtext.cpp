// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/explanationtext.h"

#include "app/table.h"
#include "app/terminal.h"

#include "core/cluster/devicename.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace pipewright::app {

namespace {

constexpr std::size_t tasksShown = 3;
constexpr const char* unexplainedText = "unexplained";

std::string tasksOf(const Program& program, const Cause& cause)
{
    std::string text;
    for (std::size_t i = 0; i < std::min(tasksShown, cause.tasks.size()); ++i) {
        const std::string label = program.label(cause.tasks[i]);
        // For a transfer only its block: the cause already names both devices.
        text += (i == 0 ? "" : ", ") + (cause.peer < 0 ? label : label.substr(0, label.find(" from ")));
    }
    if (cause.tasks.size() > tasksShown)
        text += fmt::format(" and {} more", cause.tasks.size() - tasksShown);
    return text;
}

} // namespace

std::string signedDuration(Nanoseconds value)
{
    return (value < 0 ? "-" : "+") + formatDuration(std::abs(value));
}

Json causesToJson(const Program& program, const Explanation& explanation)
{
    Json causes = Json::array();
    for (const Cause& cause : explanation.causes) {
        Json object{{"cause", nameOf(cause)}, {"text", describe(cause)}};
        object["device"] = cause.device < 0 ? Json() : Json(cause.device);
        object["peer"] = cause.peer < 0 ? Json() : Json(cause.peer);
        object["contribution_ns"] = cause.contribution;
        object["excess_ns"] = cause.excess;
        object["tasks"] = cause.tasks.size();
        object["largest"] = Json::array();
        for (std::size_t i = 0; i < std::min(tasksShown, cause.tasks.size()); ++i)
            object["largest"].push_back(program.label(cause.tasks[i]));
        causes.push_back(std::move(object));
    }
    causes.push_back({{"cause", "unexplained"},
                      {"text", unexplainedText},
                      {"device", Json()},
                      {"peer", Json()},
                      {"contribution_ns", explanation.unexplained()},
                      {"excess_ns", explanation.unexplained()},
                      {"tasks", 0},
                      {"largest", Json::array()}});
    return causes;
}

Json toJson(const Program& program, const Explanation& explanation)
{
    Json object;
    object["makespan"] = {{"predicted_ns", explanation.predicted},
                          {"measured_ns", explanation.measured},
                          {"with_every_cause_put_right_ns", explanation.allRight}};
    object["causes"] = causesToJson(program, explanation);
    object["straggler"] = explanation.straggler < 0 ? Json() : Json(explanation.straggler);
    object["per_device"] = Json::array();
    for (std::size_t d = 0; d < explanation.devices.size(); ++d) {
        const DeviceExplanation& e = explanation.devices[d];
        object["per_device"].push_back({{"device", d},
                                        {"computing_ns", e.computing},
                                        {"idle_ns",
                                         {{"warm_up", e.warmUp},
                                          {"late_data", e.lateData},
                                          {"transfer", e.transfer},
                                          {"pinned", e.pinned},
                                          {"host_gap", e.hostGap},
                                          {"memory_wait", e.memoryWait},
                                          {"cool_down", e.coolDown},
                                          {"not_recorded", e.notRecorded}}},
                                        {"transferring_ns", e.transferring},
                                        {"transfers_overlapped", shareOf(e.overlapped, e.transferring)},
                                        {"slowness", e.slowness}});
    }
    object["critical_path"] = {{"computing_ns", explanation.path.computing},
                               {"transferring_ns", explanation.path.transferring},
                               {"waiting_ns", explanation.path.waiting},
                               {"blocks", Json::array()}};
    for (const TaskId t : explanation.criticalPath)
        object["critical_path"]["blocks"].push_back(program.label(t));
    object["blocks"] = Json::array();
    for (const BlockDifference& block : explanation.blocks)
        object["blocks"].push_back({{"block", program.label(block.task)},
                                    {"device", program.tasks[block.task].device},
                                    {"start_difference_ns", block.start},
                                    {"duration_difference_ns", block.duration},
                                    {"late_because", nameOf(block.why)}});
    return object;
}

void printCauses(const Design& design, const Program& program, const Explanation& explanation, std::size_t most)
{
    const auto nameOfDevice = [&](int device) { return deviceName(design.cluster, device); };
    TextTable table({"cause", "in the makespan", "in all tasks", "largest"});
    std::size_t shown = 0;
    for (const Cause& cause : explanation.causes)
        if (shown < most && (cause.contribution != 0 || shown == 0)) {
            table.addRow({describe(cause, nameOfDevice), signedDuration(cause.contribution),
                          signedDuration(cause.excess), tasksOf(program, cause)});
            ++shown;
        }
    if (explanation.unexplained() != 0)
        table.addRow({unexplainedText, signedDuration(explanation.unexplained()), "", "what no record shows"});
    if (shown > 0 || explanation.unexplained() != 0)
        table.print();
    else
        printText("nothing differs from the prediction\n");
}

void print(const Design& design, const Program& program, const Explanation& explanation)
{
    printText("predicted {}, measured {} ({}); with every cause put right {}\n\n",
              formatDuration(explanation.predicted), formatDuration(explanation.measured),
              signedDuration(explanation.measured - explanation.predicted), formatDuration(explanation.allRight));
    constexpr std::size_t causesShown = 8;
    printCauses(design, program, explanation, causesShown);
    printText("\n");
    const auto any = [&](Nanoseconds DeviceExplanation::*part) {
        return std::any_of(explanation.devices.begin(), explanation.devices.end(),
                           [part](const DeviceExplanation& device) { return device.*part != 0; });
    };
    using Part = std::pair<const char*, Nanoseconds DeviceExplanation::*>;
    std::vector<Part> parts{{"warm-up", &DeviceExplanation::warmUp},    {"late data", &DeviceExplanation::lateData},
                            {"transfer", &DeviceExplanation::transfer}, {"host gap", &DeviceExplanation::hostGap},
                            {"memory", &DeviceExplanation::memoryWait}, {"cool-down", &DeviceExplanation::coolDown}};
    for (const Part& rare :
         {Part{"pinned", &DeviceExplanation::pinned}, Part{"not recorded", &DeviceExplanation::notRecorded}})
        if (any(rare.second))
            parts.push_back(rare);
    std::vector<std::string> head{"device", "computing"};
    for (const Part& part : parts)
        head.emplace_back(part.first);
    head.insert(head.end(), {"transfers overlapped", "slowness"});
    TextTable devices(std::move(head));
    for (std::size_t d = 0; d < explanation.devices.size(); ++d) {
        const DeviceExplanation& e = explanation.devices[d];
        std::vector<std::string> row{deviceName(design.cluster, static_cast<int>(d)), formatDuration(e.computing)};
        for (const Part& part : parts)
            row.push_back(formatDuration(e.*part.second));
        row.insert(row.end(), {percent(shareOf(e.overlapped, e.transferring)), fmt::format("{:.2f}x", e.slowness)});
        devices.addRow(std::move(row));
    }
    devices.print();
    if (explanation.straggler >= 0)
        printText("\n{} is a straggler: its blocks take {:.2f} times what the median device's do\n",
                  deviceName(design.cluster, explanation.straggler),
                  explanation.devices[explanation.straggler].slowness);
    printText("\ncritical path of the measured step: {} computing, {} in transfers, {} waiting, {} tasks\n",
              formatDuration(explanation.path.computing), formatDuration(explanation.path.transferring),
              formatDuration(explanation.path.waiting), explanation.criticalPath.size());
}

Json toJson(const std::vector<GpuGaps>& gaps)
{
    Json array = Json::array();
    for (const GpuGaps& g : gaps)
        if (g.recorded)
            array.push_back({{"device", g.device},
                             {"running_ns", g.running},
                             {"idle_ns",
                              {{"late_data", g.lateData},
                               {"link", g.link},
                               {"late_host", g.host},
                               {"other_slice", g.otherSlice},
                               {"other", g.other},
                               {"cool_down", g.coolDown}}}});
    return array;
}

void print(const Design& design, const std::vector<GpuGaps>& gaps)
{
    printText("\nwhat each device's GPU did for it, by its kernels:\n");
    TextTable table({"device", "running", "late data", "link", "late host", "other slice", "other", "cool-down"});
    for (const GpuGaps& g : gaps)
        if (g.recorded)
            table.addRow({deviceName(design.cluster, g.device), formatDuration(g.running), formatDuration(g.lateData),
                          formatDuration(g.link), formatDuration(g.host), formatDuration(g.otherSlice),
                          formatDuration(g.other), formatDuration(g.coolDown)});
    table.print();
    printText("late host: the data was there and the next kernel was not launched; other slice: it was launched, and "
              "another device's kernels ran on the same GPU\n");
}

} // namespace pipewright::app
