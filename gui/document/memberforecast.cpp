// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/memberforecast.h"

#include "core/program/compile.h"
#include "gui/widgets/words.h"

#include <algorithm>
#include <utility>

namespace pipewright {

namespace {

std::pair<GroupStages, MemberProgram> byFormula(const Design& design)
{
    GroupStages stages = groupStages(design);
    MemberProgram members =
        memberProgram(compile(design.schedule, design.costs, design.dataflow), stages, design.costs);
    return {std::move(stages), std::move(members)};
}

/// Empty rows, one for each member.
MemberForecast::Members named(const Design& design, const GroupStages& stages)
{
    MemberForecast::Members members;
    for (std::size_t device = 0; device < stages.membersOfDevice.size(); ++device) {
        members.first.push_back(stages.firstOf(static_cast<int>(device)));
        const DeviceSpec& spec = design.cluster.devices[device];
        auto& group = members.ofDevice.emplace_back();
        for (int m = 0; m < stages.membersOfDevice[device]; ++m) {
            MemberForecast::Member& member = group.emplace_back();
            member.name = QString::fromStdString(spec.group ? spec.group->devices[m].name : spec.name);
            for (std::size_t copy = 0; copy < stages.plans.size(); ++copy)
                if (stages.deviceOfCopy[copy] == static_cast<int>(device))
                    member.shares.push_back(
                        {static_cast<int>(copy) % stages.perReplica, stages.plans[copy].plan.ratios.front()[m]});
        }
    }
    return members;
}

} // namespace

MemberForecast::Members MemberForecast::of(const Design& design, const Maker& maker)
{
    const auto [stages, program] = maker(design);
    const Prediction prediction = predictMembers(program);
    Members members = named(design, stages);
    members.makespan = prediction.metrics.makespan;
    for (std::size_t device = 0; device < stages.membersOfDevice.size(); ++device) {
        const int fullest = fullestMember(program.program, stages, static_cast<int>(device));
        members.memory.peaks.push_back(prediction.metrics.devices[fullest].peakBytes);
        members.memory.curves.push_back(prediction.timeline.memory[fullest]);
    }
    const Program& tasks = program.program;
    std::vector<Member*> all;
    for (std::vector<Member>& group : members.ofDevice)
        for (Member& member : group)
            all.push_back(&member);
    for (std::size_t m = 0; m < all.size(); ++m)
        all[m]->peakBytes = prediction.metrics.devices[m].peakBytes;
    for (TaskId t = 0; t < tasks.tasks.size(); ++t) {
        const Task& task = tasks.tasks[t];
        const bool collective = task.kind == TaskKind::Collective;
        if (!collective && task.kind != TaskKind::Compute && task.kind != TaskKind::Update)
            continue;
        const PassParts& pass = stages.stages[stages.copyOf(task.stage, task.replica)].passes[indexOf(task.op)];
        Part part;
        part.start = prediction.timeline.start[t];
        part.end = prediction.timeline.end[t];
        part.block = {task.op, task.stage, task.microbatch, task.replica};
        part.collective = collective;
        part.index = tasks.partOfTask[t];
        part.count = static_cast<int>(collective ? pass.collectives.size() : pass.parts.size());
        if (collective)
            part.kind = pass.kinds[part.index];
        const int last = collective ? task.peer : task.device;
        int slowest = task.device;
        for (int m = task.device; m <= last; ++m)
            if (!all[m]->parts.empty() && !all[slowest]->parts.empty()
                && all[m]->parts.back().end > all[slowest]->parts.back().end)
                slowest = m;
        for (int m = task.device; m <= last; ++m) {
            Member& member = *all[m];
            part.waited = 0;
            part.slowest = -1;
            if (collective && !member.parts.empty() && m != slowest) {
                part.waited = part.start - member.parts.back().end;
                part.slowest = slowest - task.device;
            }
            member.waiting += part.waited;
            (collective ? member.exchanging : member.busy) += part.end - part.start;
            member.parts.push_back(part);
        }
    }
    // The tasks are in an order in which they can run, which is that of each member, too.
    return members;
}

MemberForecast::MemberForecast(Document& document, QObject* parent)
    : QObject(parent), m_document(document), m_maker(byFormula)
{
    connect(&document, &Document::designChanged, this, &MemberForecast::refresh);
    connect(&document, &Document::overlayChanged, this, &MemberForecast::refresh);
}

void MemberForecast::setMaker(Maker maker)
{
    m_maker = std::move(maker);
    m_of.reset();
    refresh();
}

void MemberForecast::want(bool wanted)
{
    m_wanted = wanted;
    refresh();
}

void MemberForecast::refresh()
{
    const std::shared_ptr<const Design> design = m_document.sharedDesign();
    const bool wanted = m_wanted || (m_document.overlay() != nullptr && hasGroups(*design));
    if (!wanted || m_of == design)
        return;
    m_work.drop();
    m_of = design;
    m_working = false;
    const Diagnostics forbids =
        hasGroups(*design)
            ? whyNoMembers(*design)
            : Diagnostics{{Severity::Error, "cluster", tr("no stage is held by a group of devices").toStdString(), {}}};
    if (!forbids.empty() || !m_document.prediction() || !m_document.unplaced().empty()) {
        m_members.reset();
        if (forbids.empty()) {
            m_why = tr("the schedule cannot run as it is");
        } else {
            Diagnostic why = forbids.front();
            why.where.clear(); // a key of the design's file means nothing here
            m_why = proseText(why);
        }
        Q_EMIT changed();
        return;
    }
    m_working = true;
    if (!m_members)
        m_why = tr("working out what the members do …");
    Q_EMIT changed();
    m_work.start(
        [design, maker = m_maker](const auto&) {
            std::pair<std::shared_ptr<const Members>, QString> made; // or why there are none
            try {
                made.first = std::make_shared<const Members>(of(*design, maker));
            } catch (const Error& error) {
                made.second = proseText(error.diagnostics().front());
            }
            return made;
        },
        [this](auto made) {
            m_working = false;
            std::tie(m_members, m_why) = std::move(made);
            if (m_members)
                m_document.setGroupMemory(m_of, m_members->memory);
            Q_EMIT changed();
        });
}

} // namespace pipewright

#include "moc_memberforecast.cpp"
