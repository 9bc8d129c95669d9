// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/inspector/timefields.h"

#include "gui/timeline/timelineview.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/words.h"

namespace pipewright {
namespace {

QGridLayout* gridOf(QWidget* rows)
{
    auto* grid = makeLayout<QGridLayout>(rows, {0, 0, 0, 0});
    grid->setHorizontalSpacing(10);
    grid->setVerticalSpacing(6);
    grid->setColumnStretch(0, 1);
    return grid;
}

void addFields(QGridLayout& grid, int row, const QString& caption, TimeField* first, TimeField* second)
{
    grid.addWidget(makeCaptionOf(first ? first : second, caption), row, 0);
    if (first)
        grid.addWidget(first, row, 1);
    grid.addWidget(second, row, 2);
}

/// The errors in a range of time; empty when it is valid.
Diagnostics faultsOf(const QString& name, Nanoseconds from, Nanoseconds to, Nanoseconds end)
{
    const std::string where = name.toStdString();
    if (from >= to)
        return {{Severity::Error, where, TimeFields::tr("it would end before it begins").toStdString(),
                 TimeFields::tr("it begins at %1").arg(quantityText(exactDuration(from))).toStdString()}};
    if (to > end)
        return {{Severity::Error, where,
                 TimeFields::tr("the schedule ends before %1").arg(quantityText(exactDuration(to))).toStdString(),
                 TimeFields::tr("at most %1").arg(quantityText(exactDuration(end))).toStdString()}};
    return {};
}

} // namespace

TimeFields::TimeFields(TimelineView& timeline, QWidget* parent)
    : QWidget(parent), m_timeline(timeline), m_range(new QWidget(this))
{
    const QString visible =
        tr("The time that the timeline shows, as by dragging in the overview; empty shows everything");
    m_visibleFrom = new TimeField(tr("Start of the visible range"), visible, this);
    m_visibleTo = new TimeField(tr("End of the visible range"), visible, this);
    const QString range = tr("The measured range, as by dragging on the ruler, for example 12.5ms; empty "
                             "removes it (R measures, Shift+R comes here)");
    m_from = new TimeField(tr("Start of the measured range"), range, m_range);
    m_to = new TimeField(tr("End of the measured range"), range, m_range);
    m_length = new TimeField(tr("Length of the measured range"), range, m_range);

    auto* always = new QWidget(this);
    addFields(*gridOf(always), 0, tr("visible"), m_visibleFrom, m_visibleTo);
    QGridLayout* rows = gridOf(m_range);
    addFields(*rows, 0, tr("measured"), m_from, m_to);
    addFields(*rows, 1, tr("its length"), nullptr, m_length);
    auto* layout = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 6);
    layout->addWidget(always);
    layout->addWidget(m_range);

    for (TimeField* field : {m_visibleFrom, m_visibleTo, m_from, m_to, m_length})
        connect(field, &TimeField::refused, this, &TimeFields::checked);
    connect(m_visibleFrom, &TimeField::entered, this,
            [this](std::optional<Nanoseconds> time) { showBetween(time, m_timeline.visibleRange().second); });
    connect(m_visibleTo, &TimeField::entered, this,
            [this](std::optional<Nanoseconds> time) { showBetween(m_timeline.visibleRange().first, time); });
    connect(m_from, &TimeField::entered, this, [this](std::optional<Nanoseconds> time) {
        if (const auto range = m_timeline.range())
            measureBetween(time, range->second);
    });
    connect(m_to, &TimeField::entered, this, [this](std::optional<Nanoseconds> time) {
        if (const auto range = m_timeline.range())
            measureBetween(range->first, time);
    });
    connect(m_length, &TimeField::entered, this, [this](std::optional<Nanoseconds> time) {
        if (const auto range = m_timeline.range())
            measureBetween(range->first, time ? std::optional(range->first + *time) : std::nullopt);
    });
    connect(&m_timeline, &TimelineView::viewRangeChanged, this, &TimeFields::refreshVisible);
    connect(&m_timeline, &TimelineView::rangeChanged, this, &TimeFields::refreshRange);
    refreshVisible();
    refreshRange();
}

void TimeFields::editRange()
{
    m_from->setFocus(Qt::ShortcutFocusReason);
    m_from->selectAll();
}

void TimeFields::refreshVisible()
{
    const auto [from, to] = m_timeline.visibleRange();
    m_visibleFrom->setTime(from);
    m_visibleTo->setTime(to);
}

void TimeFields::refreshRange()
{
    const auto range = m_timeline.range();
    m_from->setTime(range ? std::optional(range->first) : std::nullopt);
    m_to->setTime(range ? std::optional(range->second) : std::nullopt);
    m_length->setTime(range ? std::optional(range->second - range->first) : std::nullopt);
    m_range->setVisible(range.has_value());
}

void TimeFields::showBetween(std::optional<Nanoseconds> from, std::optional<Nanoseconds> to)
{
    Diagnostics faults;
    if (!from || !to)
        m_timeline.showAll();
    else if (faults = faultsOf(tr("visible range"), *from, *to, m_timeline.total()); faults.empty())
        m_timeline.showRange(*from, *to);
    refreshVisible();
    Q_EMIT checked(faults);
}

void TimeFields::measureBetween(std::optional<Nanoseconds> from, std::optional<Nanoseconds> to)
{
    Diagnostics faults;
    if (!from || !to)
        m_timeline.setRange(std::nullopt);
    else if (faults = faultsOf(tr("measured range"), *from, *to, m_timeline.total()); faults.empty())
        m_timeline.setRange(std::pair(*from, *to));
    refreshRange();
    Q_EMIT checked(faults);
}

} // namespace pipewright

#include "moc_timefields.cpp"
