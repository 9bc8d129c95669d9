// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/compare/comparetable.h"

#include "core/predict/bubblerates.h"
#include "core/predict/stepcosts.h"
#include "core/predict/throughput.h"
#include "gui/compare/noisefields.h"
#include "gui/document/document.h"
#include "gui/widgets/copying.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/words.h"

#include <QHeaderView>
#include <QLocale>
#include <QResizeEvent>
#include <QTableWidget>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>

namespace pipewright {

namespace {

/// One row: its number for a schedule, its format, and which direction is better.
struct Row {
    QString name, definition;
    std::function<std::optional<double>(const ComparedSchedule&)> value;
    QString (*text)(double value, double largest); ///< a size in the unit of the row's largest
    QString (*difference)(double now, double reference, double largest);
    int better = -1; ///< -1: less is better, +1: more is better
};

QString duration(double value, double)
{
    return durationText(static_cast<Nanoseconds>(value));
}
QString size(double value, double largest)
{
    return sizeAmong(static_cast<Bytes>(value), static_cast<Bytes>(largest));
}
QString share(double value, double)
{
    return percentText(value);
}
QString multiple(double value, double)
{
    return multipleText(value);
}
QString tokens(double value, double)
{
    return QObject::tr("%1 tok/s").arg(rateText(value));
}
QString count(double value, double)
{
    return QLocale(QLocale::English).toString(static_cast<qlonglong>(value));
}

QString relative(double now, double reference, double)
{
    return reference != 0 ? signedPercent((now - reference) / reference) : QString();
}
QString points(double now, double reference, double)
{
    return signedPoints(now - reference);
}
QString sizeDifference(double now, double reference, double largest)
{
    return signedSizeAmong(static_cast<Bytes>(now) - static_cast<Bytes>(reference), static_cast<Bytes>(largest));
}
QString multipleDifference(double now, double reference, double)
{
    if (now == reference)
        return QObject::tr("unchanged");
    return (now > reference ? QStringLiteral("+") : QStringLiteral("\u2212")) + multipleText(std::abs(now - reference));
}
QString countDifference(double now, double reference, double largest)
{
    if (now == reference)
        return QObject::tr("unchanged");
    return (now > reference ? QStringLiteral("+") : QStringLiteral("\u2212"))
           + count(std::abs(now - reference), largest);
}

using AllCosts = std::map<const Prediction*, StepCosts>;

std::shared_ptr<const AllCosts> costsOf(const std::vector<ComparedSchedule>& schedules)
{
    auto costs = std::make_shared<AllCosts>();
    for (const ComparedSchedule& schedule : schedules)
        if (schedule.prediction)
            (*costs)[schedule.prediction] = stepCosts(schedule.prediction->program, schedule.prediction->timeline);
    return costs;
}

/// A row from the cost table of Cyclic Data Parallelism.
template<typename Field>
Row costRow(const QString& name, const QString& definition, const std::shared_ptr<const AllCosts>& costs,
            Field StepCosts::*field)
{
    constexpr bool bytes = std::is_same_v<Field, Bytes>;
    return {name,
            definition,
            [costs, field](const ComparedSchedule& schedule) -> std::optional<double> {
                const auto found = costs->find(schedule.prediction);
                return found == costs->end() ? std::nullopt : std::optional(double(found->second.*field));
            },
            bytes ? size : count,
            bytes ? sizeDifference : countDifference,
            -1};
}

template<typename Read>
auto ofMetrics(Read read)
{
    return [read](const ComparedSchedule& schedule) -> std::optional<double> {
        return schedule.prediction ? std::optional<double>(read(schedule.prediction->metrics)) : std::nullopt;
    };
}

using Spreads = std::map<const Prediction*, StepSpread>;

/// The spread of each schedule's step time under noise.
std::shared_ptr<const Spreads> spreadsOf(const std::vector<ComparedSchedule>& schedules, const NoiseChoice& noise)
{
    auto spreads = std::make_shared<Spreads>();
    for (const ComparedSchedule& schedule : schedules)
        if (schedule.prediction)
            (*spreads)[schedule.prediction] = spreadOfStep(schedule.prediction->program, schedule.design.costs,
                                                           shownNoise(schedule.design.costs, noise));
    return spreads;
}

Row spreadRow(const QString& name, const std::shared_ptr<const Spreads>& spreads, Nanoseconds StepSpread::*field)
{
    return {name,
            NoiseFields::explanation(),
            [spreads, field](const ComparedSchedule& schedule) -> std::optional<double> {
                const auto found = spreads->find(schedule.prediction);
                return found == spreads->end() ? std::nullopt : std::optional(double(found->second.*field));
            },
            duration,
            relative,
            -1};
}

std::vector<Row> rowsFor(const std::vector<ComparedSchedule>& schedules, const NoiseChoice& noise)
{
    const std::shared_ptr<const Spreads> spreads = spreadsOf(schedules, noise);
    std::vector<Row> rows{
        {QObject::tr("makespan"), QObject::tr("First start to last end of one step"),
         ofMetrics([](const Metrics& m) { return double(m.makespan); }), duration, relative, -1},
        spreadRow(QObject::tr("median with noise"), spreads, &StepSpread::median),
        spreadRow(QObject::tr("95th percentile with noise"), spreads, &StepSpread::p95),
        {QObject::tr("span"), QObject::tr("Longest time from a device's first block to its last"),
         ofMetrics([](const Metrics& m) { return double(m.span); }), duration, relative, -1},
    };
    for (const BubbleRate& rate : bubbleRates)
        rows.push_back({QString::fromUtf8(rate.name), QString::fromStdString(describe(rate)),
                        ofMetrics([value = rate.value](const Metrics& m) { return m.*value; }), share, points, -1});
    rows.push_back({QObject::tr("live activations"), QObject::tr("Most of any device, in microbatches on one device"),
                    ofMetrics([](const Metrics& m) {
                        double most = 0;
                        for (const DeviceMetrics& device : m.devices)
                            most = std::max(most, device.peakActivations);
                        return most;
                    }),
                    multiple, multipleDifference, -1});
    rows.push_back({QObject::tr("throughput"), QObject::tr("Tokens of one step over the makespan"),
                    [](const ComparedSchedule& s) -> std::optional<double> {
                        const double rate =
                            s.prediction ? tokensPerSecond(s.design, s.prediction->metrics.makespan) : 0;
                        return rate > 0 ? std::optional(rate) : std::nullopt;
                    },
                    tokens, relative, +1});
    rows.push_back({QObject::tr("transfers"), QObject::tr("Messages between devices in one step"),
                    [](const ComparedSchedule& s) -> std::optional<double> {
                        return s.prediction ? std::optional(double(s.prediction->transfers)) : std::nullopt;
                    },
                    count, countDifference, -1});
    rows.push_back({QObject::tr("bytes moved"), QObject::tr("Bytes of all transfers of one step"),
                    [](const ComparedSchedule& s) -> std::optional<double> {
                        return s.prediction ? std::optional(double(s.prediction->transferred)) : std::nullopt;
                    },
                    size, sizeDifference, -1});
    const std::shared_ptr<const AllCosts> costs = costsOf(schedules);
    rows.push_back(costRow(QObject::tr("activations"), QObject::tr("Kept for backwards at most, on the fullest device"),
                           costs, &StepCosts::activations));
    rows.push_back(costRow(QObject::tr("activations, all devices"),
                           QObject::tr("Kept for backwards on all devices together, at the fullest moment"), costs,
                           &StepCosts::allActivations));
    rows.push_back(costRow(QObject::tr("parameters"),
                           QObject::tr("Weights with their older and predicted copies, on the device that has most"),
                           costs, &StepCosts::parameters));
    rows.push_back(costRow(QObject::tr("gradients moved"),
                           QObject::tr("Gradient sums between devices, per update of all stages"), costs,
                           &StepCosts::gradientTraffic));
    rows.push_back(costRow(QObject::tr("weights moved"),
                           QObject::tr("Weights between devices, per update of all stages"), costs,
                           &StepCosts::weightTraffic));
    rows.push_back(costRow(QObject::tr("transfers in a row"),
                           QObject::tr("The most that follow one another with no block between them"), costs,
                           &StepCosts::transfersInRow));
    std::size_t devices = 0;
    for (const ComparedSchedule& schedule : schedules)
        if (schedule.prediction)
            devices = std::max(devices, schedule.prediction->metrics.devices.size());
    for (std::size_t device = 0; device < devices; ++device)
        rows.push_back({QObject::tr("peak, %1").arg(deviceLabel(schedules.front().design, static_cast<int>(device))),
                        QObject::tr("Weights, optimizer state, activations and buffers at the fullest moment"),
                        [device](const ComparedSchedule& s) -> std::optional<double> {
                            if (!s.prediction || device >= s.prediction->metrics.devices.size())
                                return std::nullopt;
                            return double(s.prediction->metrics.devices[device].peakBytes);
                        },
                        size, sizeDifference, -1});
    return rows;
}

constexpr int leastRow = 23;

/// Columns get the width of their text and share what is left over; rows share the height; both up to a largest size.
class CompareTable : public QTableWidget {
public:
    using QTableWidget::QTableWidget;

    void fit()
    {
        constexpr int widest = 300, mostRow = 32;
        if (rowCount() > 0)
            verticalHeader()->setDefaultSectionSize(std::clamp(viewport()->height() / rowCount(), leastRow, mostRow));
        std::vector<int> needed(static_cast<std::size_t>(columnCount()));
        int spare = viewport()->width();
        for (int column = 0; column < columnCount(); ++column) {
            needed[column] = std::max(sizeHintForColumn(column), horizontalHeader()->minimumSectionSize());
            spare -= needed[column];
        }
        for (int column = 0; column < columnCount(); ++column)
            setColumnWidth(column, std::max(needed[column],
                                            std::min(needed[column] + std::max(0, spare) / columnCount(), widest)));
    }

protected:
    void resizeEvent(QResizeEvent* event) override
    {
        QTableWidget::resizeEvent(event);
        fit();
    }
};

double largestOf(const Row& row, const std::vector<ComparedSchedule>& schedules)
{
    double largest = 0;
    for (const ComparedSchedule& schedule : schedules)
        largest = std::max(largest, row.value(schedule).value_or(0));
    return largest;
}

/// Pads a difference to `length`, so that the values before it align in a column.
QString padded(const QString& difference, qsizetype length)
{
    return QStringLiteral("   ") + difference.rightJustified(length, QChar(0x00A0));
}

} // namespace

QTableWidget* makeCompareTable(QWidget* parent)
{
    auto* table = new CompareTable(parent);
    table->setAccessibleName(QObject::tr("Differences between the schedules"));
    table->setFont(Theme::numbers(TextSize::Small));
    table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table->setSelectionMode(QAbstractItemView::SingleSelection);
    table->setSelectionBehavior(QAbstractItemView::SelectColumns);
    table->setShowGrid(false);
    table->setFrameShape(QFrame::NoFrame);
    table->setTabKeyNavigation(false);
    makeCopyable(*table);
    table->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    table->verticalHeader()->setMinimumSectionSize(leastRow);
    table->verticalHeader()->setMinimumWidth(132);
    table->verticalHeader()->setFont(Theme::words(TextSize::Small));
    table->verticalHeader()->setHighlightSections(false);
    table->horizontalHeader()->setFont(Theme::words(TextSize::Small, QFont::DemiBold));
    table->horizontalHeader()->setHighlightSections(false);
    table->horizontalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    table->horizontalHeader()->setMinimumSectionSize(100);
    table->horizontalHeader()->setTextElideMode(Qt::ElideMiddle);
    return table;
}

int neededHeight(const QTableWidget& table)
{
    return table.horizontalHeader()->sizeHint().height() + table.rowCount() * leastRow;
}

void fillCompareTable(QTableWidget& table, const std::vector<ComparedSchedule>& schedules, const NoiseChoice& noise)
{
    const Theme& theme = Theme::of(table);
    const std::vector<Row> rows = rowsFor(schedules, noise);
    table.clear();
    table.setRowCount(static_cast<int>(rows.size()));
    table.setColumnCount(static_cast<int>(schedules.size()));
    for (int column = 0; column < table.columnCount(); ++column) {
        auto* item = new QTableWidgetItem(schedules[column].name);
        item->setToolTip(item->text());
        item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
        table.setHorizontalHeaderItem(column, item);
    }
    std::vector<qsizetype> longest(schedules.size(), 0);
    for (const Row& row : rows) {
        const double largest = largestOf(row, schedules);
        for (std::size_t column = 1; column < schedules.size(); ++column)
            if (const auto value = row.value(schedules[column]), reference = row.value(schedules.front());
                value && reference)
                longest[column] = std::max(longest[column], row.difference(*value, *reference, largest).size());
    }
    for (int r = 0; r < table.rowCount(); ++r) {
        const Row& row = rows[r];
        auto* name = new QTableWidgetItem(row.name);
        name->setToolTip(row.definition);
        table.setVerticalHeaderItem(r, name);
        const std::optional<double> reference = row.value(schedules.front());
        const double largest = largestOf(row, schedules);
        for (int column = 0; column < table.columnCount(); ++column) {
            const std::optional<double> value = row.value(schedules[column]);
            QString text = value ? row.text(*value, largest) : QStringLiteral("–");
            QColor color = theme.text;
            if (column > 0)
                text += padded(value && reference ? row.difference(*value, *reference, largest) : QString(),
                               longest[column]);
            if (column > 0 && value && reference) {
                color = *value == *reference                     ? theme.dim
                        : (*value - *reference) * row.better > 0 ? theme.good
                                                                 : theme.bad;
            }
            auto* item = new QTableWidgetItem(text);
            item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
            item->setForeground(color);
            item->setToolTip(row.definition);
            table.setItem(r, column, item);
        }
    }
    static_cast<CompareTable&>(table).fit();
}

} // namespace pipewright
