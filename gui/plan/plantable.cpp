// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/plan/plantable.h"

#include "core/plan/planwords.h"
#include "gui/compare/noisefields.h"
#include "gui/memory/memorykinds.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"

#include <QHeaderView>
#include <QKeyEvent>
#include <QPainter>
#include <QStyledItemDelegate>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int barWidth = 96, barHeight = 10, barGap = 10;

/// The peak as text, and right of it as a bar of its kinds; all bars of the list have one scale.
class PeakDelegate : public QStyledItemDelegate {
public:
    explicit PeakDelegate(PlanTable& table) : QStyledItemDelegate(&table), m_table(table) {}

    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        return QStyledItemDelegate::sizeHint(option, index) + QSize(barWidth + barGap, 0);
    }

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        QStyleOptionViewItem empty = option; // background and focus
        initStyleOption(&empty, index);
        empty.text.clear();
        const QStyle* const style = m_table.style();
        style->drawControl(QStyle::CE_ItemViewItem, &empty, painter, &m_table);
        const Theme& theme = Theme::of(m_table);
        const QRect bar(option.rect.right() - barWidth - barGap / 2, option.rect.center().y() - barHeight / 2, barWidth,
                        barHeight);
        painter->save();
        painter->setFont(Theme::numbers(TextSize::Small));
        painter->setPen(option.state.testFlag(QStyle::State_Selected) ? theme.text : theme.dim);
        painter->drawText(QRect(option.rect.topLeft(), QPoint(bar.left() - barGap, option.rect.bottom())),
                          Qt::AlignRight | Qt::AlignVCenter, index.data().toString());
        painter->fillRect(bar, theme.lane);
        const DeviceMemory* const memory = m_table.memoryOf(index.row());
        const double scale = barWidth / std::max(1.0, static_cast<double>(m_table.largestPeak()));
        if (memory) {
            double x = bar.left();
            for (const MemoryKind& kind : memoryKinds(theme, {memory, 1})) {
                const double width = static_cast<double>(memory->*kind.bytes) * scale;
                painter->fillRect(QRectF(x, bar.top(), width, barHeight), kind.color);
                x += width;
            }
        } else { // its kinds are not known yet
            const double width = static_cast<double>(m_table.peakOf(index.row())) * scale;
            painter->fillRect(QRectF(bar.left(), bar.top(), width, barHeight), theme.hairline);
        }
        painter->restore();
    }

private:
    PlanTable& m_table;
};

QString wordsOf(const std::string& text)
{
    return QString::fromStdString(text);
}

struct Row {
    const PlanSetting& setting;
    const Family& family;
    int chunks;
    Nanoseconds step;
    Bytes peak;
    double tokens;
    bool onFrontier;
};

/// In one unit and with one number of decimals per column.
struct Scale {
    Nanoseconds best = 0, longest = 0;
    Bytes peak = 0;
};

/// Of plans that are predicted, or found so far: the shortest first.
template<class Plan>
Scale scaleOf(const std::vector<Plan>& plans, std::vector<Bytes>& peaks)
{
    Scale scale;
    peaks.clear();
    for (const Plan& plan : plans) {
        peaks.push_back(plan.peak);
        scale.longest = std::max(scale.longest, plan.step);
        scale.peak = std::max(scale.peak, plan.peak);
    }
    scale.best = plans.empty() ? 0 : plans.front().step;
    return scale;
}

std::vector<ValueCell> cellsOf(const Row& row, int rank, const Scale& scale)
{
    std::vector<ValueCell> cells(PlanTable::columns);
    cells[PlanTable::Rank] = {row.onFrontier ? QStringLiteral("%1*").arg(rank) : QStringLiteral("%1 ").arg(rank)};
    cells[PlanTable::Step] = {durationText(row.step, scale.longest)};
    cells[PlanTable::OverBest] = {
        rank == 1
            ? QObject::tr("best")
            : QLatin1Char('+') + percentText(static_cast<double>(row.step) / static_cast<double>(scale.best) - 1)};
    cells[PlanTable::Tokens] = {rateText(row.tokens)};
    cells[PlanTable::Peak] = {sizeText(row.peak, scale.peak)};
    cells[PlanTable::Degrees] = {wordsOf(degreesText(row.setting)), false, {}, false};
    cells[PlanTable::Microbatches] = {
        QStringLiteral("%1 × %2").arg(row.setting.microbatches).arg(row.setting.microbatchSize), false, {}, false};
    cells[PlanTable::Schedule] = {wordsOf(scheduleText(row.family, row.chunks)), false, {}, false};
    cells[PlanTable::Memory] = {wordsOf(memoryText(row.setting)), false, {}, false};
    return cells;
}

QString csvCell(QString text)
{
    if (!text.contains(QLatin1Char(',')) && !text.contains(QLatin1Char('"')))
        return text;
    return QLatin1Char('"') + text.replace(QLatin1Char('"'), QLatin1String("\"\"")) + QLatin1Char('"');
}

} // namespace

PlanTable::PlanTable(QWidget* parent)
    : ValueTable(tr("Plans"),
                 {QString(), tr("step"), tr("over best"), tr("median"), tr("95 % within"), tr("tok/s/device"),
                  tr("MFU"), tr("peak"), tr("degrees"), tr("microbatches"), tr("schedule"), tr("memory")},
                 parent)
{
    setLeastColumn(36); // there are many, and a small screen should show most
    setSelectionBehavior(QAbstractItemView::SelectRows);
    setItemDelegateForColumn(Peak, new PeakDelegate(*this));
    setEditTriggers(QAbstractItemView::NoEditTriggers);
    setColumnTip(Rank, tr("* on the frontier: no other plan is as short and takes less memory"));
    setColumnTip(Step, tr("Of one step, predicted"));
    setColumnTip(OverBest, tr("How much longer than the first"));
    setColumnTip(Median, tr("The median, predicted. %1").arg(NoiseFields::explanation()));
    setColumnTip(P95, tr("The 95th percentile, predicted. %1").arg(NoiseFields::explanation()));
    setColumnTip(Tokens, tr("Tokens a second of each GPU, predicted"));
    setColumnTip(Mfu, tr("The model's floating-point operations, without recomputation, over those of the GPUs' peak "
                         "rate in the step, predicted"));
    setColumnTip(Peak, tr("Of the fullest device, predicted, by kind"));
    setColumnTip(Microbatches, tr("Microbatches of a copy of the pipeline × sequences of each"));
    setColumnTip(Memory, tr("What copies share out, and what is made again for the backward"));
    for (const Column column : {Degrees, Microbatches, Schedule, Memory}) // also while there is no row
        horizontalHeaderItem(column)->setTextAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    setNoisy(false);
    connect(this, &QTableWidget::currentCellChanged, this, [this](int row, int, int before) {
        if (row != before)
            Q_EMIT currentPlanChanged(row);
    });
    connect(this, &QTableWidget::cellDoubleClicked, this, [this](int row) { Q_EMIT planActivated(row); });
}

void PlanTable::setNoisy(bool noisy)
{
    setColumnHidden(Median, !noisy);
    setColumnHidden(P95, !noisy);
}

void PlanTable::setResult(std::shared_ptr<const PlanResult> result, bool noisy)
{
    m_result = std::move(result);
    setNoisy(noisy);
    const std::vector<TrainingPlan>& plans = m_result->plans;
    Scale scale = scaleOf(plans, m_peaks);
    for (const TrainingPlan& plan : plans)
        scale.longest = std::max(scale.longest, plan.noisy.p95);
    m_largestPeak = scale.peak;
    std::vector<std::vector<ValueCell>> rows;
    for (std::size_t i = 0; i < plans.size(); ++i) {
        const TrainingPlan& plan = plans[i];
        const bool onFrontier =
            std::find(m_result->frontier.begin(), m_result->frontier.end(), i) != m_result->frontier.end();
        rows.push_back(cellsOf(
            {plan.setting, *plan.family, plan.chunks, plan.step, plan.peak, plan.tokensPerSecondPerDevice, onFrontier},
            static_cast<int>(i) + 1, scale));
        rows.back()[Mfu] = {percentText(plan.mfu)};
        if (noisy) {
            rows.back()[Median] = {durationText(plan.noisy.median, scale.longest)};
            rows.back()[P95] = {durationText(plan.noisy.p95, scale.longest)};
        }
        QStringList kinds;
        for (const MemoryKind& kind : memoryKinds(Theme::of(*this), {&plan.memory, 1}))
            kinds << tr("%1 %2").arg(kind.name, sizeAmong(plan.memory.*kind.bytes, plan.peak));
        for (ValueCell& cell : rows.back())
            cell.tip = wordsOf(plan.why);
        rows.back()[Peak].tip =
            tr("Device %1 at its peak:").arg(plan.memory.device) + QLatin1Char('\n') + kinds.join(QLatin1Char('\n'));
    }
    setRows(rows);
}

void PlanTable::setFound(const std::vector<PlanFound>& plans, const std::vector<bool>& onFrontier, bool noisy)
{
    m_result.reset();
    setNoisy(noisy);
    const Scale scale = scaleOf(plans, m_peaks);
    m_largestPeak = scale.peak;
    std::vector<std::vector<ValueCell>> rows;
    for (std::size_t i = 0; i < plans.size(); ++i) {
        const PlanFound& plan = plans[i];
        rows.push_back(cellsOf({plan.setting, *plan.family, plan.chunks, plan.step, plan.peak,
                                plan.tokensPerSecondPerDevice, onFrontier[i]},
                               static_cast<int>(i) + 1, scale));
    }
    setRows(rows);
}

void PlanTable::setCurrentPlan(int plan)
{
    if (plan != currentRow() && plan < rowCount())
        setCurrentCell(plan, Step);
}

const DeviceMemory* PlanTable::memoryOf(int plan) const
{
    return m_result ? &m_result->plans[static_cast<std::size_t>(plan)].memory : nullptr;
}

QString PlanTable::asText() const
{
    QStringList lines;
    for (int row = -1; row < rowCount(); ++row) {
        QStringList cells;
        for (int column = 0; column < columnCount(); ++column)
            if (!isColumnHidden(column))
                cells << (row < 0 ? horizontalHeaderItem(column)->text() : text(row, column).trimmed());
        lines << cells.join(QLatin1Char('\t'));
    }
    return lines.join(QLatin1Char('\n')) + QLatin1Char('\n');
}

QString PlanTable::asCsv() const
{
    if (!m_result)
        return {};
    const Theme& theme = Theme::of(*this);
    const bool noisy = !isColumnHidden(P95);
    DeviceMemory all; // names every kind
    all.framework = all.gathered = 1;
    const std::vector<MemoryKind> kinds = memoryKinds(theme, {&all, 1});
    QStringList header{QStringLiteral("rank"), QStringLiteral("frontier"), QStringLiteral("step_ns")};
    if (noisy)
        header << QStringLiteral("median_ns") << QStringLiteral("p95_ns");
    header << QStringLiteral("tokens_per_second_per_device") << QStringLiteral("mfu") << QStringLiteral("peak_bytes");
    for (const MemoryKind& kind : kinds)
        header << kind.name + QStringLiteral("_bytes");
    header << QStringLiteral("tensor") << QStringLiteral("context") << QStringLiteral("expert")
           << QStringLiteral("folded_experts") << QStringLiteral("pipeline") << QStringLiteral("data")
           << QStringLiteral("chunks") << QStringLiteral("microbatch_size") << QStringLiteral("microbatches")
           << QStringLiteral("family") << QStringLiteral("zero") << QStringLiteral("reshard")
           << QStringLiteral("recompute") << QStringLiteral("why");
    QStringList lines{header.join(QLatin1Char(','))};
    for (std::size_t i = 0; i < m_result->plans.size(); ++i) {
        const TrainingPlan& plan = m_result->plans[i];
        const PlanSetting& s = plan.setting;
        const bool onFrontier =
            std::find(m_result->frontier.begin(), m_result->frontier.end(), i) != m_result->frontier.end();
        QStringList cells{QString::number(i + 1), onFrontier ? QStringLiteral("yes") : QStringLiteral("no"),
                          QString::number(plan.step)};
        if (noisy)
            cells << QString::number(plan.noisy.median) << QString::number(plan.noisy.p95);
        cells << QString::number(plan.tokensPerSecondPerDevice, 'f', 1) << QString::number(plan.mfu, 'f', 4)
              << QString::number(plan.peak);
        for (const MemoryKind& kind : kinds)
            cells << QString::number(plan.memory.*kind.bytes);
        for (const int number : {s.tensor, s.context, s.expert})
            cells << QString::number(number);
        cells << (s.foldedExperts ? QStringLiteral("yes") : QStringLiteral("no"));
        for (const int number : {s.pipeline, s.data, plan.chunks, s.microbatchSize, s.microbatches})
            cells << QString::number(number);
        cells << QString::fromUtf8(plan.family->name) << QString::number(s.zero.level)
              << (s.zero.reshard.every ? QStringLiteral("always") : QStringLiteral("never"))
              << wordsOf(nameOf(s.recompute)) << csvCell(wordsOf(plan.why));
        lines << cells.join(QLatin1Char(','));
    }
    return lines.join(QLatin1Char('\n')) + QLatin1Char('\n');
}

void PlanTable::keyPressEvent(QKeyEvent* event)
{
    if ((event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) && currentRow() >= 0) {
        Q_EMIT planActivated(currentRow());
        return;
    }
    ValueTable::keyPressEvent(event);
}

} // namespace pipewright

#include "moc_plantable.cpp"
