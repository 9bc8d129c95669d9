// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/memberforecast.h"

#include "core/program/transferorder.h"
#include "gui/widgets/words.h"

#include <algorithm>
#include <utility>

namespace pipewright {

namespace {

/// Empty rows, one for each member.
MemberForecast::Members named(const Design& design, const GroupStages& stages)
{
    MemberForecast::Members members;
    members.sends.resize(stages.membersOfDevice.size());
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

/// A piece of what a group sends to another one.
void addSend(const Program& program, TaskId piece, Nanoseconds start, MemberForecast::Members& members)
{
    const int from = program.groupOfDevice[program.tasks[piece].device];
    Transfer transfer = nameOf(program, piece);
    transfer.destination = program.groupOfDevice[transfer.destination];
    if (transfer.destination == from)
        return;
    std::vector<MemberForecast::Send>& sends = members.sends[from];
    if (sends.empty() || sends.back().transfer != transfer) // pieces follow each other
        sends.push_back({start, transfer});
    sends.back().start = std::min(sends.back().start, start);
}

} // namespace

MemberForecast::Members MemberForecast::of(const Design& design, const MemberPredictor::Members& predicted)
{
    const GroupStages& stages = predicted.stages->stages;
    const Prediction& prediction = predicted.prediction;
    Members members = named(design, stages);
    members.makespan = prediction.metrics.makespan;
    const Program& tasks = predicted.program.program;
    std::vector<Member*> all;
    for (std::vector<Member>& group : members.ofDevice)
        for (Member& member : group)
            all.push_back(&member);
    for (std::size_t m = 0; m < all.size(); ++m)
        all[m]->peakBytes = prediction.metrics.devices[m].peakBytes;
    for (TaskId t = 0; t < tasks.tasks.size(); ++t) {
        const Task& task = tasks.tasks[t];
        const bool collective = task.kind == TaskKind::Collective;
        if (task.kind == TaskKind::Transfer && task.op != Op::U)
            addSend(tasks, t, prediction.timeline.start[t], members);
        if (!collective && task.kind != TaskKind::Compute && task.kind != TaskKind::Update)
            continue;
        const PassParts& pass = stages.stages[stages.copyOf(task.stage, task.replica)].passes[indexOf(task.op)];
        Part part;
        part.start = prediction.timeline.start[t];
        part.end = prediction.timeline.end[t];
        part.block = {task.op, task.stage, task.microbatch(), task.replica};
        part.collective = collective;
        part.index = tasks.partOfTask[t];
        part.count = static_cast<int>(collective ? pass.collectives.size() : pass.parts.size());
        if (collective)
            part.kind = pass.kinds[part.index];
        const int last = collective ? task.lastMember() : task.device;
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
    // The tasks are in a topological order, which is also the order of each member.
    return members;
}

MemberForecast::MemberForecast(Document& document, QObject* parent) : QObject(parent), m_document(document)
{
    connect(&document, &Document::designChanged, this, &MemberForecast::refresh);
}

void MemberForecast::want(bool wanted)
{
    m_wanted = wanted;
    refresh();
}

void MemberForecast::refresh()
{
    const std::shared_ptr<const Design> design = m_document.sharedDesign();
    const bool isPending = m_document.prediction() && isMemoryPending(*design, *m_document.prediction());
    if ((!m_wanted && !isPending) || (m_of == design && (m_working || !isPending)))
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
            why.where.clear(); // a key of the design file is of no use in the window
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
        [design, predictor = m_document.memberPredictor()](const auto&) {
            Made made;
            try {
                made.predicted = std::make_shared<const MemberPredictor::Members>(predictor->members(*design));
                made.members = std::make_shared<const Members>(of(*design, *made.predicted));
            } catch (const Error& error) {
                made.why = proseText(error.diagnostics().front());
            }
            return made;
        },
        [this](Made made) {
            m_working = false;
            m_members = std::move(made.members);
            m_why = std::move(made.why);
            if (made.predicted)
                m_document.setMembers(m_of, *made.predicted);
            else
                m_document.setNoMembers(m_of, m_why);
            Q_EMIT changed();
        });
}

} // namespace pipewright

#include "moc_memberforecast.cpp"
