// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/transferedits.h"

#include "core/program/compile.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

std::vector<Transfer> namesOf(const std::vector<IssuedTransfer>& list)
{
    std::vector<Transfer> names;
    for (const IssuedTransfer& issued : list)
        names.push_back(issued.transfer);
    return names;
}

} // namespace

EditResult moveTransfer(const Design& design, const Program& program, int device, int from, int to)
{
    const std::vector<Transfer> list = namesOf(transfersOf(program, device));
    const auto count = static_cast<int>(list.size());
    if (from < 0 || from >= count || to < 0 || to >= count)
        return {design.schedule,
                {{Severity::Error, fmt::format("device {}", device), fmt::format("it has {} transfers", count),
                  "name places among them, from 0"}}};
    EditResult result{design.schedule, {}};
    if (from == to)
        return result;
    if (!program.offload.empty())
        return {design.schedule,
                {{Severity::Error, "schedule.offload", "stages offload, so transfers go where the data puts them",
                  "let every stage keep what it made to reorder transfers"}}};
    const auto at = [&](int index) -> const Transfer& { return list[index]; };
    const auto isStated = [&](int first, int second) {
        return first >= 0 && second < count
               && std::any_of(design.schedule.transferOrder.begin(), design.schedule.transferOrder.end(),
                              [&](const TransferPrecedence& pair) {
                                  return sameTransfer(pair.first, at(first)) && sameTransfer(pair.second, at(second));
                              });
    };
    // In a list of stated neighbours the old ones stay in order, and the transfer gets its new ones.
    if (isStated(from - 1, from) && isStated(from, from + 1))
        state(result.schedule, at(from - 1), at(from + 1));
    if (to < from && isStated(to - 1, to))
        state(result.schedule, at(to - 1), at(from));
    if (to > from && isStated(to, to + 1))
        state(result.schedule, at(from), at(to + 1));
    std::vector<Transfer> wanted = list;
    if (to < from)
        std::rotate(wanted.begin() + to, wanted.begin() + from, wanted.begin() + from + 1);
    else
        std::rotate(wanted.begin() + from, wanted.begin() + from + 1, wanted.begin() + to + 1);
    for (int i = to; i < from; ++i)
        forget(result.schedule, at(i), at(from));
    for (int i = from + 1; i <= to; ++i)
        forget(result.schedule, at(from), at(i));
    try {
        const auto compiled = [&] {
            return compile(result.schedule, design.costs, design.dataflow, {.allowMissing = true});
        };
        // Moving back to the inferred place needs no stated pair.
        const bool forgot = result.schedule.transferOrder != design.schedule.transferOrder;
        if (forgot && namesOf(transfersOf(compiled(), device)) == wanted)
            return result;
        for (int i = to; i < from; ++i)
            state(result.schedule, at(from), at(i));
        for (int i = from + 1; i <= to; ++i)
            state(result.schedule, at(i), at(from));
        (void)compiled();
    } catch (const Error& error) {
        return {design.schedule, error.diagnostics()};
    }
    return result;
}

TransferRange transferRange(const Program& program, int device, int from)
{
    const std::vector<IssuedTransfer> list = transfersOf(program, device);
    const auto count = static_cast<int>(list.size());
    TransferRange range{0, count - 1};
    if (from < 0 || from >= count)
        return {};
    if (!program.offload.empty())
        return {from, from}; // see moveTransfer()
    if (program.blocks())
        return range; // a transfer then waits for the one before it, which says nothing about its data
    // The dependencies that do not come from the order of transfers; tasks come after their inputs.
    const auto isCompute = [](const Task& task) { return task.kind != TaskKind::Transfer; };
    std::vector<std::vector<TaskId>> extra;
    for (const Program::ExtraDependency& dependency : program.extraDependencies)
        if (isCompute(program.tasks[dependency.task])) {
            extra.resize(program.tasks.size());
            extra[dependency.task].push_back(dependency.after);
        }
    const auto eachInput = [&](TaskId task, auto visit) {
        if (isCompute(program.tasks[task]) && program.afterOnDevice[task] != none)
            visit(program.afterOnDevice[task]);
        if (program.afterData[task] != none)
            visit(program.afterData[task]);
        if (!extra.empty())
            for (const TaskId after : extra[task])
                visit(after);
    };
    const TaskId moved = list[from].task;
    std::vector<char> tied(program.tasks.size(), 0); // below `moved`: it needs them; above: they need it
    tied[moved] = 1;
    for (TaskId t = moved + 1; t-- > 0;)
        if (tied[t])
            eachInput(t, [&](TaskId input) { tied[input] = 1; });
    for (auto t = static_cast<std::size_t>(moved) + 1; t < program.tasks.size(); ++t)
        eachInput(static_cast<TaskId>(t), [&](TaskId input) {
            if (input >= moved && tied[input])
                tied[t] = 1;
        });
    for (int i = 0; i < from; ++i)
        if (tied[list[i].task])
            range.first = i + 1;
    for (int i = count - 1; i > from; --i)
        if (tied[list[i].task])
            range.last = i - 1;
    return range;
}

void state(Schedule& schedule, const Transfer& first, const Transfer& second)
{
    const TransferPrecedence pair{first, second};
    if (std::find(schedule.transferOrder.begin(), schedule.transferOrder.end(), pair) == schedule.transferOrder.end())
        schedule.transferOrder.push_back(pair);
}

bool forget(Schedule& schedule, const Transfer& first, const Transfer& second)
{
    return std::erase_if(schedule.transferOrder,
                         [&](const TransferPrecedence& pair) {
                             return sameTransfer(pair.first, first) && sameTransfer(pair.second, second);
                         })
           > 0;
}

Schedule withoutStatedOrder(const Schedule& schedule, const Transfer& transfer)
{
    Schedule free = schedule;
    const auto isIt = [&](const Transfer& other) { return sameTransfer(other, transfer); };
    std::erase_if(free.transferOrder,
                  [&](const TransferPrecedence& pair) { return isIt(pair.first) || isIt(pair.second); });
    // Its neighbours in a device's list stay in order.
    const auto passes = [&](const Transfer& other, int device) {
        return other.destination == device || schedule.deviceOf(other.producer) == device;
    };
    for (const int device : {schedule.deviceOf(transfer.producer), static_cast<int>(transfer.destination)})
        for (const TransferPrecedence& before : schedule.transferOrder)
            for (const TransferPrecedence& behind : schedule.transferOrder)
                if (isIt(before.second) && isIt(behind.first) && passes(before.first, device)
                    && passes(behind.second, device))
                    state(free, before.first, behind.second);
    return free;
}

} // namespace pipewright
