// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/grouprun.h"

#include "core/design/stagecosts.h"
#include "core/model/transformer.h"
#include "core/program/compile.h"
#include "core/program/deadlock.h"
#include "core/schedule/weightplan.h"
#include "executor/run/runsetup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipewright {

bool runsMembers(const Design& design, const RunMeans& means)
{
    return runsMemberByMember(design) && (!means.gpus || means.backend != "mpi" || mayTrain(design, means));
}

int devicesOfRun(const Design& design, const RunMeans& means)
{
    if (!runsMembers(design, means))
        return design.schedule.devices();
    int devices = 0;
    for (int d = 0; d < design.schedule.devices(); ++d) {
        const DeviceSpec& spec = design.cluster.devices.at(d);
        devices += spec.group ? static_cast<int>(spec.group->devices.size()) : 1;
    }
    return devices;
}

std::vector<GpuShare> gpusOfRun(const Design& design, const RunMeans& means)
{
    const std::vector<GpuShare>& ofDevices = design.cluster.gpus;
    if (!runsMembers(design, means))
        return ofDevices;
    std::vector<GpuShare> shares;
    std::string silent;
    for (int d = 0; d < design.schedule.devices(); ++d) {
        const auto at = static_cast<std::size_t>(d);
        const DeviceSpec& spec = design.cluster.devices.at(at);
        if (spec.group && !spec.group->gpus.empty())
            shares.insert(shares.end(), spec.group->gpus.begin(), spec.group->gpus.end());
        else if (!spec.group && at < ofDevices.size())
            shares.push_back(ofDevices[at]);
        else if (silent.empty())
            silent = fmt::format("cluster.devices[{}]{}", d, spec.group ? ".group" : "");
    }
    if (!silent.empty() && (!shares.empty() || !ofDevices.empty()))
        throw Error(silent, "its place on GPUs is not said, and that of others is",
                    "write \"gpus\" in every group, one for each member, and in the cluster for its other devices; or "
                    "leave the lists out");
    return shares;
}

namespace {

/// The design with the shared parameters, the optimizer and the sizes of stage outputs that its model and its schedule
/// imply.
Design trained(Design design)
{
    if (hasUpdates(design.schedule))
        design.workload = makeWorkload(design.workload->shape, inModel(design.schedule.weightPolicy.optimizer),
                                       design.workload->source);
    design.dataflow.shared = sharedParametersOf(*design.workload, design.layersPerStage, true);
    Costs whole;
    applyBytes(*design.workload, design.layersPerStage, design.schedule.memoryChoices(), whole);
    for (std::size_t s = 0; s < whole.stages.size(); ++s)
        design.costs.stages[s].output = whole.stages[s].output;
    return design;
}

} // namespace

MeasuredGroups::MeasuredGroups(const Design& given, bool trains, const sharding::MemberPlaces& places)
    : design(trains ? trained(given) : given), stages(groupStages(design))
{
    if (!trains)
        return;
    sharding::measureMembers(stages, factsOf(design.workload->optimizer).values, given.schedule.recompute, places);
    sharding::takeFullestMembers(stages, design.costs);
}

GroupRun::GroupRun(const Design& given, bool trains, const sharding::MemberPlaces& places)
    : MeasuredGroups(given, trains, places)
{
    groups = compile(design.schedule, design.costs, design.dataflow);
    members = memberProgram(groups, stages, design.costs, design.schedule.transferOrder);
    if (Diagnostics why = checkDeadlock(members.program, members.program.communication); !why.empty())
        throw Error(std::move(why));
    for (int group = 0; group < std::ssize(stages.membersOfDevice); ++group)
        shownMember.push_back(fullestMember(members.program, stages, group));
}

std::optional<GroupRun> groupRunOf(const Design& design, const RunOptions& options, bool trains, Backend* gpus)
{
    if (!runsMembers(design, meansOf(options)))
        return std::nullopt;
    return GroupRun(trains ? design : scaledDesign(design, options), trains,
                    {.apart = options.backend == "mpi" && !options.gpus,
                     .communicators = options.backend == "mpi" && options.gpus,
                     .backend = gpus});
}

std::string GroupRun::nameOf(int group, Backend& backend) const
{
    const int first = stages.firstOf(group), count = stages.membersOfDevice[group];
    if (count == 1)
        return backend.device(first).name();
    if (backend.peers() || backend.device(first).capabilities().hostAddressable)
        return fmt::format("{} members: {} {} {} to {}", count, backend.name(),
                           backend.peers() ? "processes" : "threads", first, first + count - 1);
    std::string names;
    for (int member = first; member < first + count; ++member)
        names += (member > first ? "; " : "") + backend.device(member).name();
    return fmt::format("{} members: {}", count, names);
}

std::vector<Bytes> GroupRun::shownOf(const std::vector<Bytes>& ofMembers) const
{
    std::vector<Bytes> shown;
    for (const int member : shownMember)
        shown.push_back(ofMembers[member]);
    return shown;
}

void requireCapture(const GroupRun& run, Backend& backend)
{
    for (int group = 0; group < std::ssize(run.stages.membersOfDevice); ++group) {
        std::vector<int> members(static_cast<std::size_t>(run.stages.membersOfDevice[static_cast<std::size_t>(group)]));
        std::iota(members.begin(), members.end(), run.stages.firstOf(group));
        if (members.size() > 1 && !backend.hasCommunicators(members))
            throw Error("--graphs",
                        fmt::format("the {} members of device {} copy from each other when the host has seen that all "
                                    "are there, which cannot be captured: NCCL does not connect them",
                                    members.size(), group),
                        "give every member a GPU of its own, where NCCL is there and --link is not copy, or leave "
                        "--graphs out");
    }
}

void noteOtherRoom(const GroupRun& run, const Design& given, bool copies, Diagnostics& notes)
{
    const GroupRun together(given, true);
    for (std::size_t d = 0; d < run.members.program.devices.size(); ++d) {
        const Bytes here = run.members.program.devices[d].peakBytes,
                    there = together.members.program.devices[d].peakBytes;
        if (here == there)
            continue;
        notes.push_back({Severity::Note, "--backend",
                         fmt::format("{}: device {} needs {} instead of {}",
                                     copies ? "members in processes of their own have copies of what the others "
                                              "send them"
                                            : "members on GPUs have room for what they move together",
                                     d, exactSize(here), exactSize(there)),
                         "use --backend host for the bytes that predict says"});
        return;
    }
}

GroupSink::GroupSink(RecordSink& to, const GroupRun& run)
    : m_to(to), m_run(run), m_partsOfBlock(run.groups.tasks.size(), 0)
{
    for (TaskId t = 0; t < run.members.program.tasks.size(); ++t)
        if (const TaskId block = run.members.blockOfTask[t]; isPartOf(t, block))
            ++m_partsOfBlock[block];
}

/// A transfer between members of one group follows a block and is not a part of that block.
bool GroupSink::isPartOf(TaskId task, TaskId block) const
{
    return (m_run.members.program.tasks[task].kind == TaskKind::Transfer)
           == (m_run.groups.tasks[block].kind == TaskKind::Transfer);
}

std::string GroupSink::nameOf(TaskId id) const
{
    const Program& program = m_run.members.program;
    const Task& task = program.tasks[id];
    const int copy = m_run.stages.copyOf(task.stage, task.replica);
    const PassParts& pass = m_run.stages.stages[copy].passes[indexOf(task.op)];
    const std::size_t part = program.partOfTask[id];
    if (task.kind == TaskKind::Collective)
        return std::string(sharding::nameOf(pass.kinds[part]));
    return fmt::format("part {} of {}", part + 1, pass.parts.size());
}

void GroupSink::append(const std::vector<TaskRecord>& records)
{
    std::vector<TaskRecord> whole;
    std::vector<GpuRecord> parts;
    for (const TaskRecord& record : records) {
        const TaskId id = m_run.members.blockOfTask[record.task];
        if (!isPartOf(record.task, id))
            continue;
        const auto [found, isNew] = m_blocks.try_emplace({record.step, id});
        Block& block = found->second;
        if (isNew)
            block = {m_partsOfBlock[id], record.start, record.end};
        block.start = std::min(block.start, record.start);
        block.end = std::max(block.end, record.end);
        const Task& task = m_run.groups.tasks[id];
        const Task& own = m_run.members.program.tasks[record.task];
        if (isOfBlock(own.kind))
            for (int member = own.firstMember(); member <= own.lastMember(); ++member)
                if (m_run.stages.membersOfDevice[task.device] > 1) {
                    GpuRecord& part = parts.emplace_back();
                    part.step = record.step;
                    part.task = id;
                    part.kind = GpuRecord::Kind::Part;
                    part.name = nameOf(record.task);
                    part.device = member;
                    part.toDevice = task.device;
                    part.start = record.start;
                    part.end = record.end;
                }
        if (--block.missing > 0)
            continue;
        const std::int32_t device = task.recordedOn();
        whole.push_back({id, record.step, device, block.start, block.end});
        m_blocks.erase(found);
    }
    m_to.append(whole);
    if (!parts.empty())
        m_to.append(parts);
}

/// GPU records name tasks of the member Program; the trace needs the blocks of the groups' Program.
void GroupSink::append(const std::vector<GpuRecord>& records)
{
    std::vector<GpuRecord> shown = records;
    for (GpuRecord& record : shown)
        if (record.task != none)
            record.task = m_run.members.blockOfTask[record.task];
    m_to.append(shown);
}

void GroupSink::append(const std::vector<MemoryRecord>& records)
{
    std::vector<MemoryRecord> shown;
    for (MemoryRecord record : records) {
        const int group = m_run.members.program.groupOfDevice[record.device];
        if (m_run.shownMember[group] != record.device)
            continue;
        record.device = group;
        shown.push_back(record);
    }
    m_to.append(shown);
}

namespace {

class GroupCheck final : public LastStepCheck {
public:
    GroupCheck(const sharding::GroupTraining& work, const LastStep& last) : m_work(work), m_last(last) {}

    void begin() override
    {
        if (m_last.program.versioned())
            m_startOfStages = startOfStages(m_last, m_work.values(BufferKind::Parameters), m_work.optimizerState());
        else
            m_start = m_work.parameters();
    }
    GradientCheck compare() override
    {
        if (m_last.program.versioned())
            return checkUpdates(m_last, m_startOfStages, m_work.values(BufferKind::Parameters));
        const auto& [design, program, optimizer, data, number, bound] = m_last;
        const ModelShape& shape = design.workload->shape;
        const sharding::FollowedGroups followed = m_work.followed(bound);
        const sharding::StepData ofStep = sharding::sampleStep(data, shape, number, program.microbatches);
        return checkGroupGradients(m_work.gradients(), sharding::referenceStep(design, m_start, ofStep, &followed),
                                   bound, shape.dataType);
    }

private:
    const sharding::GroupTraining& m_work;
    LastStep m_last;
    sharding::WholeTensors m_start;
    std::vector<StageStart> m_startOfStages; ///< with updates amid the step
};

} // namespace

std::unique_ptr<LastStepCheck> checkOf(const sharding::GroupTraining& work, const LastStep& last)
{
    return std::make_unique<GroupCheck>(work, last);
}

GradientCheck checkGroupGradients(const sharding::WholeTensors& gradients, const sharding::ReferenceStep& reference,
                                  double bound, DataType stored)
{
    GradientCheck check{.bitEqual = true, .within = bound};
    double squares = 0, elements = 0;
    for (const auto& [name, theirs] : reference.gradients) {
        for (const float value : theirs.data)
            squares += double(value) * double(value);
        elements += static_cast<double>(theirs.elements());
    }
    const double usual = elements > 0 ? std::sqrt(squares / elements) : 0;
    const double rounding = (stored == DataType::Bf16 ? 0x1p-9 : 0x1p-20) * usual; // fp32: a few additions
    for (const auto& [name, theirs] : reference.gradients) {
        const auto ours = gradients.find(name);
        if (ours == gradients.end() || ours->second.elements() != theirs.elements()) {
            addTensor(check, name, {}, theirs.data);
            continue;
        }
        double difference = 0;
        for (std::size_t i = 0; i < theirs.elements(); ++i)
            difference += std::pow(double(ours->second.data[i]) - double(theirs.data[i]), 2);
        if (difference > 0 && std::sqrt(difference / static_cast<double>(theirs.elements())) <= rounding)
            check.bitEqual = false;
        else
            addTensor(check, name, ours->second.data, theirs.data);
    }
    return withRouting(std::move(check), reference.routing);
}

} // namespace pipewright
