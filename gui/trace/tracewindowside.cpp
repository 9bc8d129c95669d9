// SPDX-License-Identifier: GPL-3.0-or-later
// The side panels of a TraceWindow: time by cause, selection, and totals.
#include "gui/trace/tracewindow.h"

#include "gui/trace/activityview.h"
#include "gui/trace/devicetimelist.h"
#include "gui/trace/notelist.h"
#include "gui/trace/tracetables.h"
#include "gui/widgets/copying.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/words.h"

#include <QComboBox>
#include <QHeaderView>
#include <QTabWidget>
#include <QTreeWidget>

#include <algorithm>

namespace pipewright {

namespace {

constexpr std::size_t mostNames = 500; ///< rows; longer tables are of no use

class ActivityRow : public QTreeWidgetItem {
public:
    using QTreeWidgetItem::QTreeWidgetItem;
    bool operator<(const QTreeWidgetItem& other) const override
    {
        const int column = treeWidget() ? treeWidget()->sortColumn() : 0;
        return column == 0 ? text(0) < other.text(0)
                           : data(column, sortedValueRole).toDouble() < other.data(column, sortedValueRole).toDouble();
    }
    void setNumber(int column, const QString& text, double value)
    {
        setText(column, text);
        setData(column, sortedValueRole, value);
        setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
        setFont(column, Theme::numbers(TextSize::Small));
    }
};

} // namespace

QTreeWidget* makeSumTable(const QString& name, const QStringList& columns, QWidget* parent)
{
    auto* table = new QTreeWidget(parent);
    table->setAccessibleName(name);
    table->setHeaderLabels(columns);
    table->setRootIsDecorated(false);
    table->setUniformRowHeights(true);
    table->setFrameShape(QFrame::NoFrame);
    table->setSortingEnabled(true);
    makeCopyable(*table);
    table->header()->setStretchLastSection(false);
    table->header()->setSectionResizeMode(0, QHeaderView::Stretch);
    for (int column = 1; column < columns.size(); ++column) {
        table->header()->setSectionResizeMode(column, QHeaderView::Fixed);
        table->header()->resizeSection(column, column == 1 ? 62 : 78);
        table->headerItem()->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    }
    return table;
}

QString countText(std::int64_t count)
{
    return QLocale(QLocale::English).toString(static_cast<qlonglong>(count));
}

QWidget* TraceWindow::buildSide()
{
    auto* side = new QWidget(this);
    auto* layout = makeLayout<QVBoxLayout>(side, {16, 14, 16, 12}, 10);
    layout->addWidget(makeHeading(tr("Where the time went"), side));
    m_verdict->setWordWrap(true);
    m_verdict->setAccessibleName(tr("Where the time went"));
    layout->addWidget(m_verdict);
    layout->addSpacing(4);
    layout->addWidget(makeHeading(tr("Selected"), side));
    layout->addWidget(m_facts);
    layout->addSpacing(6);
    layout->addWidget(makeHeading(tr("What it adds up to"), side));
    m_stretch->setWordWrap(true);
    layout->addWidget(m_stretch);
    m_tabs->addTab(m_devices, tr("by device"));
    m_tabs->addTab(m_names, tr("by name"));
    m_tabs->addTab(m_lanes, tr("by lane"));
    m_tabs->addTab(m_notes, tr("notes"));
    m_tabs->setDocumentMode(true);
    layout->addWidget(m_tabs, 1);
    connect(m_tabs, &QTabWidget::currentChanged, this, &TraceWindow::showStretch);
    m_report->setWordWrap(true);
    m_report->setAccessibleName(tr("What the import left out"));
    layout->addWidget(m_report);
    side->setMinimumWidth(500); // room for the column captions of the "by device" table
    return side;
}

void TraceWindow::showSelection()
{
    const auto selected = m_view->selection();
    if (!selected) {
        m_facts->setFacts({{tr("nothing"), tr("click a slice"), {}, Tone::Dim}});
        return;
    }
    const StoredActivities& trace = *m_view->trace();
    const Track& track = trace.tracks[selected->track];
    const TraceLane& lane = trace.lanes[track.lane];
    const Nanoseconds start = track.start[selected->slice], duration = track.end[selected->slice] - start;
    const std::string_view kind = nameOf(track.kind[selected->slice]);
    const QString source = tr("Recorded by %1").arg(QString::fromStdString(trace.tool));
    std::vector<Fact> facts{{tr("name"), QString::fromStdString(trace.strings[track.name[selected->slice]]), source},
                            {tr("kind"), QString::fromUtf8(kind), source},
                            {tr("duration"), durationText(duration), source},
                            {tr("start"), durationText(start), tr("Since the beginning of the trace")},
                            {tr("lane"), QString::fromStdString(lane.name), source}};
    if (lane.device >= 0)
        facts.push_back({tr("device"), tr("GPU %1").arg(lane.device), source});
    if (!track.correlation.empty() && track.correlation[selected->slice] != 0)
        facts.push_back({tr("correlation"), QString::number(track.correlation[selected->slice]),
                         tr("[ and ] lead from a launch to what it launched, and back")});
    m_facts->setFacts(facts);
}

QString TraceWindow::verdict() const
{
    return m_verdict->text();
}

QString TraceWindow::stretch() const
{
    return m_stretch->text();
}

TraceStep TraceWindow::explained() const
{
    const auto range = m_view->range();
    return range ? TraceStep{"the measured range", range->first, range->second} : m_activity;
}

void TraceWindow::chooseStep(int index)
{
    if (index <= 0 || index > std::ssize(m_steps)) {
        m_view->setRange(std::nullopt);
        m_view->showAll();
        return;
    }
    const TraceStep& step = m_steps[index - 1];
    m_view->setRange(std::pair(step.start, step.end));
    m_view->showRange(step.start, step.end);
}

void TraceWindow::sumUp()
{
    const int request = ++m_request;
    const auto [from, to] = m_view->range().value_or(m_view->window());
    // The devices' times are those of the measured range, or of all device activity, independent of zoom.
    const TraceStep stretch = explained();
    const std::pair whole(stretch.start, stretch.end);
    const bool times = m_timesOf != whole && m_opened.launches;
    // The shared pointer keeps the trace until this work ends.
    m_worker.start([this, request, trace = m_view->sharedTrace(), launches = m_opened.launches, from = from, to = to,
                    whole, times] {
        const auto stopped = [&] { return m_request != request; };
        const ActivitySummary summary = summarise(*trace, from, to, stopped);
        const DeviceTimes spent =
            times ? deviceTimes(*trace, *launches, whole.first, whole.second, stopped) : DeviceTimes();
        QMetaObject::invokeMethod(
            this,
            [this, request, summary, spent, whole, times] {
                if (m_request != request || m_later.isActive()) // the range has changed since
                    return;
                if (times) {
                    m_timesOf = whole;
                    showTimes(spent);
                }
                fill(summary);
            },
            Qt::QueuedConnection);
    });
}

void TraceWindow::showTimes(const DeviceTimes& times)
{
    QString text = QString::fromStdString(pipewright::verdict(times));
    text[0] = text[0].toUpper();
    m_verdict->setText(text + QLatin1Char('.'));
    m_devices->setTimes(times, *m_view->trace());
    m_tabs->setTabVisible(m_tabs->indexOf(m_devices), !times.devices.empty()); // hide an empty table
}

void TraceWindow::showStretch()
{
    const Nanoseconds summed = m_summary.to - m_summary.from;
    if (m_view->range())
        return m_stretch->setText(tr("the measured %1").arg(durationText(summed)));
    const bool byDevice = m_tabs->currentWidget() == m_devices; // these times do not depend on the zoom
    const QString all = durationText(m_activity.end - m_activity.start);
    if (byDevice && m_steps.size() > 1) // the first of which warms up
        return m_stretch->setText(
            tr("the %1 in which devices ran, all steps and what is between them; choose a step at the top").arg(all));
    m_stretch->setText(byDevice ? tr("the %1 in which devices ran; drag over the ruler to measure less").arg(all)
                                : tr("the visible %1; drag over the ruler to measure less").arg(durationText(summed)));
}

void TraceWindow::fill(const ActivitySummary& summary)
{
    m_summary = summary;
    const StoredActivities& trace = *m_view->trace();
    showStretch();
    for (QTreeWidget* table : {m_names, m_lanes}) {
        table->setSortingEnabled(false);
        table->clear();
    }
    for (std::size_t i = 0; i < std::min(mostNames, summary.names.size()); ++i) {
        const NameSummary& name = summary.names[i];
        auto* row = new ActivityRow(m_names);
        row->setText(0, QString::fromStdString(std::string(withoutScope(trace.strings[name.name]))).simplified());
        row->setToolTip(0, tr("%1\nReturn goes to the longest").arg(QString::fromStdString(trace.strings[name.name])));
        row->setData(0, sortedValueRole, static_cast<qulonglong>(i));
        row->setSizeHint(0, QSize(0, 21));
        row->setNumber(1, countText(name.count), double(name.count));
        row->setNumber(2, durationText(name.total), double(name.total));
        row->setNumber(3, durationText(name.longest), double(name.longest));
    }
    for (std::size_t i = 0; i < summary.lanes.size(); ++i) {
        const LaneSummary& lane = summary.lanes[i];
        const TraceLane& which = trace.lanes[lane.lane];
        const QString name = QString::fromStdString(which.name);
        auto* row = new ActivityRow(m_lanes);
        row->setText(0, which.device >= 0 ? tr("GPU %1 · %2").arg(which.device).arg(name) : name);
        row->setData(0, sortedValueRole, static_cast<qulonglong>(i));
        row->setSizeHint(0, QSize(0, 21));
        row->setNumber(1, countText(lane.slices), double(lane.slices));
        row->setNumber(2, durationText(lane.busy), double(lane.busy));
        row->setNumber(3, percentText(lane.share), lane.share);
    }
    m_names->setSortingEnabled(true);
    m_names->sortByColumn(2, Qt::DescendingOrder);
    for (QTreeWidget* table : {m_names, m_lanes})
        table->header()->setSortIndicatorShown(false); // it would cover the captions
    m_lanes->setSortingEnabled(true);
    m_lanes->sortByColumn(3, Qt::DescendingOrder);
    m_summing = false;
    Q_EMIT summed();
}

} // namespace pipewright
