// SPDX-License-Identifier: GPL-3.0-or-later
// Which experts the tokens of a group's run visited: kept by every member, and put together for the reference.
#include "executor/sharding/grouptraining.h"
#include "executor/sharding/runnablegraph.h"
#include "executor/sharding/trainedmember.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace pipewright::sharding {

namespace {

/// Marks tokens that all members route but not to the same experts: a reference cannot follow these.
void leaveOutUnlike(std::vector<std::int32_t>& choices, std::span<const std::int32_t> others, std::size_t perToken)
{
    for (std::size_t first = 0; first + perToken <= std::min(choices.size(), others.size()); first += perToken) {
        const std::span<std::int32_t> own = std::span(choices).subspan(first, perToken);
        const std::span<const std::int32_t> theirs = others.subspan(first, perToken);
        if (!std::is_permutation(own.begin(), own.end(), theirs.begin()))
            std::fill(own.begin(), own.end(), -1);
    }
}

} // namespace

std::vector<GroupTraining::Routing> GroupTraining::routingsOf(std::size_t copy, int member) const
{
    const SharedStage& stage = m_stages.plans[copy];
    std::vector<Routing> found;
    for (const ShardingInstruction& instruction : stage.plan.program.instructions) {
        const Node& node = stage.graph.node(instruction.tensor);
        if (!instruction.computes() || !routesTokens(node))
            continue;
        const Shape shape =
            shapeOfPiece(*m_theories[copy], instruction.after, member); // groups, tokens, experts, slots
        const auto perToken = static_cast<std::size_t>(chosenPerToken(node));
        found.push_back({instruction.after, perToken, static_cast<std::size_t>(shape[0] * shape[1]) * perToken});
    }
    return found;
}

void GroupTraining::keepChoices()
{
    const auto count = [this](const Program& program, TaskId t) {
        const Task& task = program.tasks[t];
        std::int64_t sum = 0;
        if (task.kind != TaskKind::Compute || task.op != Op::F || program.partOfTask[t] != 0)
            return sum;
        const int copy = m_stages.copyOf(task.stage, task.replica);
        const int member = task.device - m_stages.firstOf(m_stages.deviceOfCopy[static_cast<std::size_t>(copy)]);
        for (const Routing& routing : routingsOf(static_cast<std::size_t>(copy), member))
            sum += static_cast<std::int64_t>(routing.count);
        return sum;
    };
    m_choices.emplace(count, KeptChoices::On::AllDevices); // each adds up in another order
}

FollowedGroups GroupTraining::followed(double tolerance) const
{
    FollowedGroups followed{{}, tolerance};
    followed.choices.resize(static_cast<std::size_t>(m_program->microbatches));
    // Members are numbered in the order of their pieces, but a Program may list their tasks in any order.
    std::map<std::tuple<int, std::size_t, int>, std::span<const std::int32_t>> kept; // microbatch, copy, member
    for (TaskId t = 0; t < m_program->tasks.size(); ++t)
        if (const std::span<const std::int32_t> values = std::as_const(*m_choices).of(t); !values.empty()) {
            const Task& task = m_program->tasks[t];
            const auto copy = static_cast<std::size_t>(m_stages.copyOf(task.stage, task.replica));
            kept[{task.microbatch(), copy, task.device - m_stages.firstOf(m_stages.deviceOfCopy[copy])}] = values;
        }
    for (auto& [of, values] : kept) {
        const auto [microbatch, copy, member] = of;
        for (const Routing& routing : routingsOf(copy, member)) {
            const std::span<const std::int32_t> own = values.first(routing.count);
            values = values.subspan(routing.count);
            const std::string name = m_model->nameOf(copy, m_stages.plans[copy].graph.node(routing.made.tensor));
            std::vector<std::int32_t>& whole = followed.choices[static_cast<std::size_t>(microbatch)][name];
            if (member == 0 || routing.made.relation.kind == RelationKind::Gather)
                whole.insert(whole.end(), own.begin(), own.end());
            else
                leaveOutUnlike(whole, own, routing.perToken);
        }
    }
    return followed;
}

} // namespace pipewright::sharding
