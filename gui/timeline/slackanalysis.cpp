// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/slackanalysis.h"

#include "core/predict/criticalpath.h"

#include <QPainter>

#include <algorithm>

namespace pipewright {

void SlackAnalysis::setPrediction(std::shared_ptr<const Prediction> prediction)
{
    m_prediction = std::move(prediction);
    m_slack.reset();
    m_greatest.reset();
    m_critical.reset();
}

Nanoseconds SlackAnalysis::slackOf(TaskId task)
{
    if (!m_slack)
        m_slack = slack(m_prediction->program, m_prediction->timeline);
    return (*m_slack)[task];
}

Nanoseconds SlackAnalysis::greatestSlack()
{
    if (!m_greatest) {
        m_greatest = 0;
        for (std::size_t t = 0; m_prediction && t < m_prediction->program.tasks.size(); ++t)
            if (m_prediction->program.tasks[t].kind == TaskKind::Compute)
                m_greatest = std::max(*m_greatest, slackOf(static_cast<TaskId>(t)));
    }
    return *m_greatest;
}

bool SlackAnalysis::isCritical(TaskId task)
{
    if (!m_critical) {
        m_critical.emplace(m_prediction->program.tasks.size(), char{0});
        for (const TaskId each : criticalPath(m_prediction->program, m_prediction->timeline))
            (*m_critical)[each] = 1;
    }
    return (*m_critical)[task] != 0;
}

void SlackAnalysis::shade(QPainter& painter, const Lane& lane, const TimeAxis& axis, const QRectF& area, double scale,
                          QColor ground)
{
    const Nanoseconds greatest = greatestSlack();
    if (greatest == 0)
        return;
    std::size_t i = lane.firstEndingAfter(axis.start);
    const std::vector<LaneBlock>& blocks = lane.blocks();
    // At most one block per pixel column: where several share one, the first stands for them.
    while (i < blocks.size() && static_cast<double>(blocks[i].start) < axis.end()) {
        const LaneBlock& block = blocks[i];
        const std::size_t next =
            std::max(i + 1, lane.firstStartingFrom(static_cast<double>(block.start) + axis.nsPerPixel, i + 1));
        if (block.task != none && slackOf(block.task) > 0) {
            const auto [first, last] =
                columns(axis, static_cast<double>(block.start), static_cast<double>(block.end), scale);
            const double share = static_cast<double>(slackOf(block.task)) / static_cast<double>(greatest);
            ground.setAlphaF(static_cast<float>(deepestShade * (0.25 + 0.75 * share)));
            painter.fillRect(QRectF(first / scale, area.top(), (last - first) / scale, area.height()), ground);
        }
        i = next;
    }
}

} // namespace pipewright
