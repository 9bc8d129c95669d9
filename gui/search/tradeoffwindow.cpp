// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/search/tradeoffwindow.h"

#include "core/predict/bubblerates.h"
#include "gui/compare/noisefields.h"
#include "gui/search/tradeoffplot.h"
#include "gui/widgets/closingrow.h"
#include "gui/widgets/copying.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/onscreen.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/words.h"

#include <QHeaderView>
#include <QProgressBar>
#include <QPushButton>
#include <QThreadPool>
#include <QTreeWidget>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

enum Column { Name, Memory, Bubble, Median, SlowStep, Loss, listColumns };
constexpr int pointRole = Qt::UserRole + 1;
constexpr TradeOffTolerance unnoticed{0.005, 0.001};

/// Sorts numerically in columns whose text is a number with a unit.
class TradeOffRow : public QTreeWidgetItem {
public:
    using QTreeWidgetItem::QTreeWidgetItem;
    bool operator<(const QTreeWidgetItem& other) const override
    {
        const int column = treeWidget() ? treeWidget()->sortColumn() : Name;
        return column == Name ? text(Name) < other.text(Name)
                              : data(column, pointRole).toDouble() < other.data(column, pointRole).toDouble();
    }
};

} // namespace

TradeOffWindow::TradeOffWindow(Document& document, QWidget* parent)
    : QDialog(parent), m_document(document), m_plot(new TradeOffPlot(TradeOffPlot::Value::Bubble, this)),
      m_list(new QTreeWidget(this)), m_noise(new NoiseFields(this)), m_progress(new QProgressBar(this)),
      m_state(makeCaption({}, TextSize::Normal, this)), m_button(new QPushButton(this))
{
    onThemeChange(this, [this] { refreshList(); }); // its rows hold colours
    setWindowTitle(tr("Memory against bubble"));
    setWindowFlag(Qt::WindowMinMaxButtonsHint);
    makePanel(this);
    m_inbox = std::make_shared<Inbox>();
    m_inbox->window = this;
    m_progress->setAccessibleName(tr("Progress"));
    m_progress->setTextVisible(false);
    m_progress->setFixedHeight(6);
    m_state->setAccessibleName(tr("State of the search"));
    m_list->setAccessibleName(tr("Schedules by memory and bubble"));
    m_list->setColumnCount(listColumns);
    m_list->setHeaderLabels(
        {tr("schedule"), tr("memory"), tr("bubble"), tr("median"), tr("slow step"), tr("slower by")});
    m_list->headerItem()->setToolTip(Bubble, QString::fromStdString(describe(rateOfMakespan)));
    m_list->headerItem()->setToolTip(Median, tr("The median. %1").arg(NoiseFields::explanation()));
    m_list->headerItem()->setToolTip(SlowStep, tr("The 95th percentile. %1").arg(NoiseFields::explanation()));
    m_list->headerItem()->setToolTip(
        Loss, tr("By how much the slow step is longer than the step without noise: the schedule with the least suffers "
                 "least from a slow block or device"));
    m_list->setRootIsDecorated(false);
    m_list->setUniformRowHeights(true);
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->setSortingEnabled(true);
    makeCopyable(*m_list);
    m_list->sortByColumn(Memory, Qt::AscendingOrder);
    m_list->header()->setStretchLastSection(false);
    m_list->header()->setSectionResizeMode(Name, QHeaderView::Stretch);
    const std::pair<Column, int> widths[] = {{Memory, 84}, {Bubble, 64}, {Median, 76}, {SlowStep, 76}, {Loss, 64}};
    for (const auto& [column, width] : widths) {
        m_list->headerItem()->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
        m_list->header()->setSectionResizeMode(column, QHeaderView::Fixed);
        m_list->header()->resizeSection(column, width);
    }
    m_list->setFixedWidth(564);
    m_button->setAutoDefault(false);
    auto* hint = makeCaption(tr("On the line: nothing has less of both. Click a point, or choose with the arrows and "
                                "Return, to make it the schedule."),
                             TextSize::Small, this);

    auto* top = new QHBoxLayout;
    top->setSpacing(12);
    top->addWidget(m_state);
    top->addWidget(m_progress, 1);
    top->addStretch(1);
    top->addWidget(makeCaption(tr("Under noise:"), TextSize::Normal, this));
    top->addWidget(m_noise);
    top->addWidget(m_button);
    auto* middle = new QHBoxLayout;
    middle->setSpacing(20);
    middle->addWidget(m_plot, 1);
    middle->addWidget(m_list);
    QHBoxLayout* bottom = makeClosingRow(*this);
    bottom->insertWidget(0, hint, 1);
    auto* layout = makeLayout<QVBoxLayout>(this, {24, 18, 24, 18}, 14);
    layout->addLayout(top);
    layout->addLayout(middle, 1);
    layout->addLayout(bottom);

    connect(m_button, &QPushButton::clicked, this, [this] { m_running ? cancel() : start(); });
    connect(m_noise, &NoiseFields::edited, this, [this] {
        if (isVisible() || m_running)
            start();
        else
            m_points.clear(); // the evaluation starts again when the window is shown
    });
    connect(m_plot, &TradeOffPlot::taken, this, &TradeOffWindow::take);
    connect(m_plot, &TradeOffPlot::currentChanged, this, [this](int point) {
        for (int i = 0; i < m_list->topLevelItemCount(); ++i)
            if (m_list->topLevelItem(i)->data(Name, pointRole).toInt() == point)
                m_list->setCurrentItem(m_list->topLevelItem(i));
    });
    connect(m_list, &QTreeWidget::currentItemChanged, this, [this](QTreeWidgetItem* item) {
        if (item)
            m_plot->setCurrent(item->data(Name, pointRole).toInt());
    });
    connect(m_list, &QTreeWidget::itemActivated, this,
            [this](QTreeWidgetItem* item) { take(item->data(Name, pointRole).toInt()); });
    connect(&m_document, &Document::designChanged, this, &TradeOffWindow::refreshPresent);
    end({});
    resizeOnScreen(*this, {1164, 600});
}

TradeOffWindow::~TradeOffWindow()
{
    // Running work ends soon and its results are dropped; the program waits for it at exit.
    m_search.request_stop();
    m_making.request_stop();
    const std::lock_guard lock(m_inbox->mutex);
    m_inbox->window = nullptr;
}

void TradeOffWindow::Inbox::post(std::function<void(TradeOffWindow&)> deliver)
{
    const std::lock_guard lock(mutex); // the window cannot be destroyed while the call is queued
    if (window)
        QMetaObject::invokeMethod(
            window, [to = window, deliver = std::move(deliver)] { deliver(*to); }, Qt::QueuedConnection);
}

void TradeOffWindow::showEvent(QShowEvent* event)
{
    QDialog::showEvent(event);
    if (!m_running && (m_points.empty() || isStale()))
        start();
    m_plot->setFocus();
}

bool TradeOffWindow::isStale() const
{
    const Design& now = m_document.design();
    return !(now.workload == m_base.workload) || !(now.cluster == m_base.cluster)
           || now.costs.source != m_base.costs.source || now.schedule.microbatches != m_base.schedule.microbatches
           || now.schedule.devices() != m_base.schedule.devices();
}

QString TradeOffWindow::state() const
{
    return m_state->text();
}

void TradeOffWindow::start()
{
    m_search.request_stop();
    m_search = {};
    m_base = m_document.design();
    m_noise->setCosts(m_base.costs);
    m_points.clear();
    const std::vector<TradeOffCandidate> candidates = tradeOffCandidates(m_base);
    m_wanted = candidates.size();
    m_running = true;
    m_clock.start();
    m_button->setText(tr("Cancel"));
    m_progress->setRange(0, static_cast<int>(m_wanted));
    m_progress->setValue(0);
    m_progress->show();
    m_state->setText(tr("working out %1 schedules …").arg(m_wanted));
    showPoints();
    refreshPresent();
    refreshList();
    QThreadPool::globalInstance()->start([inbox = m_inbox, stop = m_search.get_token(), base = m_base, candidates,
                                          noise = shownNoise(m_base.costs, m_noise->value())] {
        for (const TradeOffCandidate& candidate : candidates) {
            if (stop.stop_requested())
                return;
            inbox->post([stop, point = evaluateTradeOff(base, candidate, stop, noise)](TradeOffWindow& window) {
                if (!stop.stop_requested())
                    window.add(point);
            });
        }
    });
}

void TradeOffWindow::add(const TradeOff& point)
{
    m_points.push_back(point);
    m_progress->setValue(static_cast<int>(m_points.size()));
    showPoints();
    refreshList();
    if (m_points.size() == m_wanted) {
        const auto possible =
            std::count_if(m_points.begin(), m_points.end(), [](const TradeOff& p) { return p.possible; });
        end(tr("%1 schedules, %2 not possible here").arg(possible).arg(m_wanted - static_cast<std::size_t>(possible)));
        return;
    }
    const double left = double(m_clock.elapsed()) / double(m_points.size()) * double(m_wanted - m_points.size()) / 1000;
    m_state->setText(tr("%1 of %2 · about %3\u00a0s left")
                         .arg(m_points.size())
                         .arg(m_wanted)
                         .arg(std::max(1, static_cast<int>(std::ceil(left)))));
}

void TradeOffWindow::cancel()
{
    m_search.request_stop();
    end(tr("cancelled after %1 of %2").arg(m_points.size()).arg(m_wanted));
}

void TradeOffWindow::end(const QString& state)
{
    const bool ran = m_running;
    m_running = false;
    m_progress->hide();
    m_button->setText(tr("Work out again"));
    m_state->setText(m_result = state);
    if (ran)
        Q_EMIT finished();
}

void TradeOffWindow::showPoints()
{
    const std::vector<bool> front = paretoFront(m_points, unnoticed);
    std::vector<TradeOffPlot::Point> points;
    for (std::size_t i = 0; i < m_points.size(); ++i)
        points.push_back({QString::fromStdString(m_points[i].candidate.label()), memoryOf(m_points[i]),
                          m_points[i].bubble, front[i], m_points[i].possible});
    m_plot->setPoints(std::move(points), std::any_of(m_points.begin(), m_points.end(),
                                                     [](const TradeOff& point) { return point.peakBytes > 0; }));
}

void TradeOffWindow::refreshList()
{
    const QSignalBlocker quiet(m_list);
    const int chosen = m_plot->current();
    m_list->setSortingEnabled(false);
    m_list->clear();
    const Theme& theme = Theme::of(*this);
    // One unit and one number of decimals per column, so that the decimal points align.
    Bytes mostBytes = 0;
    Nanoseconds longest = 0;
    for (const TradeOff& point : m_points)
        if (point.possible) {
            mostBytes = std::max(mostBytes, point.peakBytes);
            longest = std::max(longest, point.noisy.p95);
        }
    for (std::size_t i = 0; i < m_points.size(); ++i) {
        const TradeOff& point = m_points[i];
        auto* row = new TradeOffRow(m_list);
        row->setText(Name, QString::fromStdString(point.candidate.label()));
        row->setData(Name, pointRole, static_cast<int>(i));
        row->setSizeHint(Name, QSize(0, 22));
        row->setText(Memory, !point.possible       ? QString()
                             : point.peakBytes > 0 ? sizeText(point.peakBytes, mostBytes)
                                                   : multipleText(point.peakActivations));
        row->setText(Bubble, point.possible ? percentText(point.bubble) : tr("not here"));
        row->setData(Memory, pointRole, point.possible ? memoryOf(point) : 1e300);
        row->setData(Bubble, pointRole, point.possible ? point.bubble : 1e300);
        const double loss = point.makespan > 0 ? double(point.noisy.p95 - point.makespan) / double(point.makespan) : 0;
        row->setText(Median, point.possible ? durationText(point.noisy.median, longest) : QString());
        row->setData(Median, pointRole, point.possible ? double(point.noisy.median) : 1e300);
        row->setText(Loss, point.possible ? signedPercent(loss) : QString());
        row->setData(Loss, pointRole, point.possible ? loss : 1e300);
        row->setText(SlowStep, point.possible ? durationText(point.noisy.p95, longest) : QString());
        row->setData(SlowStep, pointRole, point.possible ? double(point.noisy.p95) : 1e300);
        const QString tip = point.possible ? tr("Makespan %1, %2 of activations. Return makes it the schedule.")
                                                 .arg(durationText(point.makespan), multipleText(point.peakActivations))
                                           : QString::fromStdString(point.reason);
        const bool front = m_plot->isOnFront(static_cast<int>(i));
        for (int column = Name; column < listColumns; ++column) {
            row->setToolTip(column, tip);
            row->setForeground(column, front ? theme.text : theme.dim);
            if (column != Name) {
                row->setFont(column, Theme::numbers(TextSize::Small));
                row->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
            }
        }
        if (front)
            row->setFont(Name, Theme::words(TextSize::Normal, QFont::DemiBold));
        if (!point.possible)
            row->setFlags(Qt::ItemIsSelectable);
        if (static_cast<int>(i) == chosen)
            m_list->setCurrentItem(row);
    }
    m_list->setSortingEnabled(true);
    m_list->header()->setSortIndicatorShown(false); // it would cover the captions
}

void TradeOffWindow::refreshPresent()
{
    std::optional<QPointF> present;
    std::optional<Prediction> own; // predicted for the groups, not their members, like all points
    if (m_document.prediction() && runsMemberByMember(m_document.design()))
        own = predictPlaced(m_document.design());
    if (const Prediction* prediction = own ? &*own : m_document.prediction()) {
        TradeOff shown;
        for (const DeviceMetrics& device : prediction->metrics.devices) {
            shown.peakBytes = std::max(shown.peakBytes, device.peakBytes);
            shown.peakActivations = std::max(shown.peakActivations, device.peakActivations);
        }
        present.emplace(memoryOf(shown), prediction->metrics.rateMakespan);
    }
    Bytes limit = 0;
    for (const DeviceSpec& device : m_document.design().cluster.devices)
        if (device.memory > 0)
            limit = limit == 0 ? device.memory : std::min(limit, device.memory);
    m_plot->setPresent(present, limit);
    if (!m_running && !m_points.empty() && isStale())
        m_state->setText(tr("the design has changed: work out again"));
}

void TradeOffWindow::take(int point)
{
    if (point < 0 || point >= static_cast<int>(m_points.size()) || !m_points[point].possible)
        return;
    const TradeOffCandidate candidate = m_points[point].candidate;
    const QString label = QString::fromStdString(candidate.label());
    m_making.request_stop();
    m_making = {};
    m_state->setText(tr("making %1 …").arg(label));
    QThreadPool::globalInstance()->start(
        [inbox = m_inbox, stop = m_making.get_token(), label, candidate, base = m_base] {
            if (stop.stop_requested())
                return;
            Design made = designOf(base, candidate, [stop] { return stop.stop_requested(); });
            inbox->post([stop, label, design = std::move(made)](TradeOffWindow& window) {
                if (!stop.stop_requested())
                    window.finishTaking(design, label);
            });
        });
}

void TradeOffWindow::finishTaking(const Design& design, const QString& label)
{
    if (!m_running)
        m_state->setText(m_result);
    m_document.replaceDesign(design, tr("Take %1").arg(label));
}

} // namespace pipewright

#include "moc_tradeoffwindow.cpp"
