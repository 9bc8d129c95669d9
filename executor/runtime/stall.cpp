// SPDX-License-Identifier: GPL-3.0-or-later
// A run is stuck when no device runs and no awaited event has happened (cannotGoOn, O(devices)). The messages follow
// every wait to the device that should end it and to the instruction there that would: O(devices · instructions).
#include "executor/runtime/stall.h"

#include <algorithm>
#include <fmt/format.h>

namespace pipewright {

namespace {

using State = ActorStatus::State;

std::string where(const Program& program, int device, const ActorStatus& status)
{
    const auto count = program.devices[device].instructions.size();
    if (status.instruction >= count)
        return "at the end of its list";
    return fmt::format("at instruction {}: {}", status.instruction,
                       describeInstruction(program, device, status.instruction));
}

std::string doing(const Program& program, int device, const ActorStatus& status)
{
    const char* verb = "is";
    switch (status.state) {
    case State::Dead:
    case State::Failed: verb = "stopped"; break;
    case State::Stalled: verb = "hangs"; break;
    case State::WaitsForArrival:
    case State::WaitsForMembers:
    case State::WaitsForSend: verb = "waits"; break;
    case State::Done: return fmt::format("device {} has finished its list", device);
    case State::Idle:
    case State::Running: break;
    }
    return fmt::format("device {} {} {}", device, verb, where(program, device, status));
}

/// The value that a transfer carries: "F0.3", "reduce stage 0 + stage 3".
std::string valueName(const Program& program, TaskId id)
{
    const Task& task = program.tasks[id];
    return task.kind == TaskKind::Transfer ? toString(task.block()) : program.label(id);
}

/// The index of the instruction by which a device posts its side, or the list's size.
std::uint32_t instructionOf(const DevicePlan& plan, int transfer, bool asSender)
{
    for (std::uint32_t i = 0; i < plan.instructions.size(); ++i) {
        const PlannedInstruction& instruction = plan.instructions[i];
        if (instruction.kind != InstructionKind::Free
            && (asSender ? instruction.send : instruction.receive) == transfer)
            return i;
    }
    return static_cast<std::uint32_t>(plan.instructions.size());
}

std::string explainWait(const RunState& run, const RunSnapshot& snapshot, const ActorStatus& status)
{
    const Program& program = *run.program;
    const bool forArrival = status.state == State::WaitsForArrival;
    const PlannedTransfer& what = run.plan.transfers[status.transfer];
    if (what.link < 0)
        return fmt::format("waits for the copy of {}", program.label(what.task));
    const int other = forArrival ? what.from : what.to;
    const ActorStatus& otherStatus = snapshot.actors[other];
    const Link::Heads& heads = snapshot.links[what.link];
    const std::uint32_t needed = instructionOf(run.plan.devices[other], status.transfer, forArrival);

    std::string text = forArrival
                           ? fmt::format("waits for {} from device {}", valueName(program, what.task), other)
                           : fmt::format("waits until device {} has taken {}", other, valueName(program, what.task));
    if (heads.mismatch)
        return text
               + fmt::format(", but on this link device {} sends {} where device {} receives {}", what.from,
                             valueName(program, heads.send), what.to, valueName(program, heads.receive));
    const char* missing = forArrival ? "which has not been sent" : "which it has not asked for";
    const int self = forArrival ? what.to : what.from;
    const DevicePlan& ownPlan = run.plan.devices[self];
    if (const std::uint32_t own = instructionOf(ownPlan, status.transfer, !forArrival); own > status.instruction)
        return text
               + fmt::format(", which it {} only later, at instruction {}", forArrival ? "asks for" : "sends", own);
    if (otherStatus.instruction > needed && otherStatus.state != State::Dead)
        return text
               + fmt::format(
                   ", which is posted on both sides but not carried by the link from device {} to device {} ({})",
                   what.from, what.to, doing(program, other, otherStatus));
    return text + fmt::format(", {} ({})", missing, doing(program, other, otherStatus));
}

/// Names the members of the device's group that have not arrived.
std::string explainMembers(const RunState& run, const RunSnapshot& snapshot, int device)
{
    const Program& program = *run.program;
    const TaskId here = program.devices[device].instructions[snapshot.actors[device].instruction].task;
    std::string missing;
    for (int member = program.tasks[here].firstMember(); member <= program.tasks[here].lastMember(); ++member) {
        const ActorStatus& status = snapshot.actors[member];
        const auto& list = program.devices[member].instructions;
        if (status.state == State::WaitsForMembers && list[status.instruction].task == here)
            continue;
        missing += fmt::format("{}{}", missing.empty() ? "" : ", ", doing(program, member, status));
    }
    return fmt::format("waits at {} for the other members of its group ({})", program.label(here), missing);
}

} // namespace

bool cannotGoOn(const RunSnapshot& snapshot)
{
    bool waits = false;
    for (const ActorStatus& actor : snapshot.actors) {
        switch (actor.state) {
        case State::Idle:
        case State::Running:
        case State::Stalled: return false;
        case State::WaitsForArrival:
        case State::WaitsForMembers:
        case State::WaitsForSend:
            if (actor.ready)
                return false;
            waits = true;
            break;
        case State::Dead:
        case State::Failed: waits = true; break;
        case State::Done: break;
        }
    }
    return waits;
}

Diagnostics explainStall(const RunState& run, const RunSnapshot& snapshot)
{
    const Program& program = *run.program;
    Diagnostics own, waiting;
    for (std::size_t d = 0; d < snapshot.actors.size(); ++d) {
        const ActorStatus& status = snapshot.actors[d];
        const int device = static_cast<int>(d);
        const std::string place = "device " + std::to_string(device);
        const std::string at = where(program, device, status);
        switch (status.state) {
        case State::Dead:
            own.push_back({Severity::Error, place, "stopped " + at, "look for what ended it before this message"});
            break;
        case State::Failed: own.push_back({Severity::Error, place, "failed " + at, {}}); break;
        case State::Stalled: own.push_back({Severity::Error, place, "hangs " + at, {}}); break;
        case State::Idle:
        case State::Running:
            own.push_back({Severity::Error, place, "is still busy " + at,
                           "if that is only slow, give the run a longer deadline"});
            break;
        case State::WaitsForArrival:
        case State::WaitsForSend: {
            const PlannedTransfer& what = run.plan.transfers[status.transfer];
            const bool mismatch = what.link >= 0 && snapshot.links[what.link].mismatch;
            waiting.push_back({Severity::Error, place, explainWait(run, snapshot, status),
                               mismatch ? "both devices must list the transfers between them in the same order" : ""});
            break;
        }
        case State::WaitsForMembers:
            waiting.push_back({Severity::Error, place, explainMembers(run, snapshot, device), {}});
            break;
        case State::Done: break;
        }
    }
    own.insert(own.end(), waiting.begin(), waiting.end());
    return own;
}

std::string describeInstruction(const Program& program, int device, std::uint32_t instruction)
{
    const Instruction& what = program.devices[device].instructions[instruction];
    switch (what.kind) {
    case InstructionKind::Send: return "send of " + program.label(what.task);
    case InstructionKind::Receive: return "receive of " + program.label(what.task);
    case InstructionKind::Free:
        return what.task == none ? std::string("free of a buffer")
                                 : "free of a buffer after " + program.label(what.task);
    case InstructionKind::Compute:
    case InstructionKind::Reduce:
    case InstructionKind::Collective:
    case InstructionKind::Offload:
    case InstructionKind::Reload:
    case InstructionKind::Gather:
    case InstructionKind::ReduceGradients:
    case InstructionKind::Update: break;
    }
    return program.label(what.task);
}

Diagnostics whoDoesNotComeBack(const RunState& run, std::span<const std::unique_ptr<Actor>> actors,
                               const std::string& reason)
{
    Diagnostics told{
        {Severity::Error, "step " + std::to_string(run.step), reason, "the steps before it are in the trace"}};
    for (const auto& actor : actors) {
        const ActorStatus status = actor->status();
        const auto& list = run.program->devices[actor->device()].instructions;
        if (status.state == ActorStatus::State::Running && status.instruction < list.size()
            && list[status.instruction].task != none)
            told.push_back({Severity::Error, "device " + std::to_string(actor->device()),
                            "does not come back from " + run.program->label(list[status.instruction].task),
                            "give it more time (--deadline), or more memory: libraries wait for some"});
    }
    return told;
}

} // namespace pipewright
