// SPDX-License-Identifier: GPL-3.0-or-later
// The plan that the design holds for the shown stage: taken over from the list, edited in its shares and order,
// removed.
#include "core/base/rates.h"
#include "core/design/stageplans.h"
#include "gui/sharding/programflow.h"
#include "gui/sharding/ratiosliders.h"
#include "gui/sharding/shardingwindow.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/valuetable.h"
#include "gui/widgets/words.h"

#include <QComboBox>
#include <QTreeWidget>
#include <QUndoStack>

#include <algorithm>

namespace pipewright {

namespace {

constexpr std::int64_t mostBlocks = 20'000; // up to which every move of a slider predicts the design again

} // namespace

std::vector<QString> ShardingWindow::memberTexts(const DeviceSpec& device)
{
    return {QString::fromStdString(device.name), quantityText(formatFlops(device.peakFlops * device.efficiency)),
            device.memory > 0 ? sizeText(device.memory) : QString()};
}

bool ShardingWindow::isAsInDesign() const
{
    const DeviceSpec* lane = groupOfStage(m_document.design(), m_stage->currentIndex());
    if (!lane || static_cast<int>(lane->group->devices.size()) != m_members->rowCount())
        return false;
    for (int row = 0; row < m_members->rowCount(); ++row) {
        const std::vector<QString> texts = memberTexts(lane->group->devices[row]);
        for (int column = 0; column < MemberColumns; ++column)
            if (const QTableWidgetItem* item = m_members->item(row, column); !item || item->text() != texts[column])
                return false;
    }
    return true;
}

bool ShardingWindow::isOfDesign() const
{
    const DeviceSpec* lane = m_found ? groupOfStage(m_document.design(), m_found->number) : nullptr;
    return lane && *lane == m_found->lane && m_found->number == m_stage->currentIndex();
}

/// The design's own plan for the stage is the first in the list; after an edit it may be another one, or none.
void ShardingWindow::refreshOwn()
{
    if (!m_found)
        return;
    const bool had = m_found->own, shown = showsOwn();
    if (had)
        m_found->strategies.erase(m_found->strategies.begin());
    m_found->own = false;
    const sharding::StatedPlan stated =
        isOfDesign() ? planOfStage(m_document.design(), m_found->number) : sharding::StatedPlan{};
    try {
        if (!stated.program.empty()) {
            const sharding::SharedStage& stage = m_found->stage;
            const sharding::ShardingPlan plan = planOf(stated, stage.graph, stage.machine, {});
            const bool fits = devicesOverfull(plan.memory, stage.machine).empty();
            m_found->strategies.insert(
                m_found->strategies.begin(),
                {tr("in the design: %1").arg(QLatin1String(nameOf(stated.strategy).data())).toStdString(), plan.program,
                 plan.ratios, plan.cost, fits, stated.strategy});
            m_found->own = true;
        }
    } catch (const Error&) {
        m_found->own = false; // the stage has other layers now: m_found belongs to an earlier design
    }
    if (m_found->own || had)
        listStrategies();
    const int kept = m_strategy + m_found->own - had;
    m_strategies->setCurrentItem(m_strategies->topLevelItem(m_found->own || shown ? 0 : std::max(0, kept)));
    showStrategy(m_strategies->indexOfTopLevelItem(m_strategies->currentItem()));
}

SetStagePlan ShardingWindow::shownPlan() const
{
    const sharding::Alternative& strategy = m_found->strategies[m_strategy];
    return {m_found->number,
            {strategy.strategy, m_sliders->shares(), programLines(strategy.program, m_found->stage.graph)}};
}

void ShardingWindow::applyPlan(const SetStagePlan& request)
{
    if (const Diagnostics forbids = m_document.apply(request); hasErrors(forbids)) {
        m_state->setText(proseText(forbids));
        setTone(m_state, Tone::Bad);
    }
}

void ShardingWindow::usePlan()
{
    if (isOfDesign())
        applyPlan(shownPlan());
}

void ShardingWindow::moveInstruction(int from, int to)
{
    if (!isOfDesign()) {
        m_state->setText(tr("The listed devices are not those of the design: take them over first"));
        setTone(m_state, Tone::Bad);
        return;
    }
    SetStagePlan request = shownPlan();
    std::vector<std::string>& lines = request.plan.program;
    const auto at = [&](int line) { return lines.begin() + line; };
    from < to ? std::rotate(at(from), at(from + 1), at(to + 1)) : std::rotate(at(to), at(from), at(from + 1));
    const int steps = m_document.undoStack()->count();
    applyPlan(request);
    if (m_document.undoStack()->count() == steps)
        return;
    m_state->setText(tr("Moved"));
    setTone(m_state, Tone::Dim);
    m_flow->setCurrentRow(to);
}

void ShardingWindow::forgetPlan()
{
    if (isOfDesign())
        applyPlan({m_found->number, {}});
}

QString ShardingWindow::designText() const
{
    const Prediction* present = m_document.prediction();
    if (!isOfDesign() || !present || m_document.design().schedule.blocks() > mostBlocks)
        return {};
    const Document::Edit edit = m_document.tryEdit(shownPlan());
    if (hasErrors(edit.diagnostics))
        return QStringLiteral("; ") + proseText(edit.diagnostics);
    try {
        const Nanoseconds makespan = predictPlaced(*edit.design).metrics.makespan;
        return tr("; the design's step is then %1 (%2)")
            .arg(durationText(makespan),
                 signedPercent(static_cast<double>(makespan) / static_cast<double>(present->metrics.makespan) - 1));
    } catch (const Error& error) {
        return QStringLiteral("; ") + proseText(error.diagnostics());
    }
}

} // namespace pipewright
