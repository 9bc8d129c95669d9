// SPDX-License-Identifier: GPL-3.0-or-later
// Synthesis and the alternatives run on a worker thread; a generation counter drops results that a newer request has
// overtaken. Moving a slider only re-evaluates costs, O(instructions).
#include "gui/sharding/shardingwindow.h"

#include "core/base/rates.h"
#include "core/design/redesign.h"
#include "gui/sharding/programflow.h"
#include "gui/sharding/ratiosliders.h"
#include "gui/widgets/closingrow.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/onscreen.h"
#include "gui/widgets/valuetable.h"
#include "gui/widgets/words.h"

#include <QComboBox>
#include <QHeaderView>
#include <QPushButton>
#include <QTreeWidget>

#include <cmath>
#include <numeric>

namespace pipewright {

namespace {

enum StrategyColumn { Strategy, Step, Longer, StrategyColumns };
constexpr int runnersShown = 6;
constexpr auto longestSearch = std::chrono::seconds(20);

QString secondsText(double seconds)
{
    return durationText(static_cast<Nanoseconds>(std::llround(seconds * 1e9)));
}

QString firstLine(const Error& error)
{
    const Diagnostic& diagnostic = error.diagnostics().front();
    return QString::fromStdString(diagnostic.what + (diagnostic.hint.empty() ? "" : ": " + diagnostic.hint));
}

} // namespace

ShardingWindow::ShardingWindow(Document& document, QWidget* parent)
    : QDialog(parent), m_document(document), m_stage(new QComboBox(this)),
      m_members(new ValueTable(tr("Devices of the group"), {tr("device"), tr("rate"), tr("memory")}, this)),
      m_strategies(new QTreeWidget(this)), m_state(makeCaption({}, TextSize::Normal, this)),
      m_prediction(makeNumber({}, TextSize::Normal, this)), m_start(new QPushButton(tr("Shard"), this)),
      m_apply(new QPushButton(tr("Use for this device"), this)), m_best(new QPushButton(tr("Best shares"), this)),
      m_use(new QPushButton(tr("Use this plan"), this)), m_forget(new QPushButton(tr("Forget the plan"), this)),
      m_flow(new ProgramFlow(this)), m_sliders(new RatioSliders(this))
{
    setWindowTitle(tr("Sharding"));
    setWindowFlag(Qt::WindowMinMaxButtonsHint);
    makePanel(this);
    m_worker.setMaxThreadCount(1);
    m_strategies->setTextElideMode(Qt::ElideMiddle); // "linear […] by columns": the end tells them apart
    build();
    connect(m_stage, &QComboBox::currentIndexChanged, this, [this] {
        refreshMembers();
        if (isVisible())
            start();
    });
    connect(m_start, &QPushButton::clicked, this, &ShardingWindow::start);
    connect(m_apply, &QPushButton::clicked, this, &ShardingWindow::apply);
    connect(m_best, &QPushButton::clicked, this, [this] {
        showStrategy(m_strategy);
        if (showsOwn())
            applyPlan(shownPlan());
    });
    connect(m_use, &QPushButton::clicked, this, &ShardingWindow::usePlan);
    connect(m_forget, &QPushButton::clicked, this, &ShardingWindow::forgetPlan);
    connect(m_sliders, &RatioSliders::changed, this, &ShardingWindow::showShares);
    connect(m_sliders, &RatioSliders::settled, this, [this] {
        if (showsOwn())
            applyPlan(shownPlan());
    });
    connect(m_strategies, &QTreeWidget::currentItemChanged, this, [this](QTreeWidgetItem* item) {
        if (item)
            showStrategy(m_strategies->indexOfTopLevelItem(item));
    });
    connect(&m_document, &Document::designChanged, this, [this] {
        refreshStages();
        refreshOwn();
    });
    refreshStages();
    resizeOnScreen(*this, {1120, 680});
}

ShardingWindow::~ShardingWindow()
{
    ++m_generation;
    m_stop.request_stop();
    m_worker.waitForDone();
}

void ShardingWindow::build()
{
    m_stage->setAccessibleName(tr("Stage"));
    m_state->setAccessibleName(tr("State of the synthesis"));
    m_prediction->setAccessibleName(tr("Predicted step at these shares"));
    m_prediction->setWordWrap(true);
    m_use->setToolTip(tr("The design states this program and these shares; sliders then edit the design"));
    m_forget->setToolTip(tr("The design states no plan for this stage, and it is found anew"));
    for (QPushButton* button : {m_start, m_apply, m_best, m_use, m_forget})
        button->setAutoDefault(false);

    auto* top = new QHBoxLayout;
    top->setSpacing(12);
    top->addWidget(m_stage);
    top->addWidget(m_state, 1);
    top->addWidget(m_start);
    auto* left = new QVBoxLayout;
    left->setSpacing(8);
    left->addWidget(makeHeading(tr("Program"), this));
    left->addWidget(m_flow, 1);
    connect(m_flow, &ProgramFlow::moveWanted, this, &ShardingWindow::moveInstruction);
    auto* legend = makeCaption(tr("Bar: split = pieces by share; full lines = whole on every device; hatched = "
                                  "partial sums. In colour: collectives."),
                               TextSize::Small, this);
    legend->setWordWrap(true);
    left->addWidget(legend);
    auto* right = new QVBoxLayout;
    right->setSpacing(8);
    right->addLayout(buildMembers());
    right->addSpacing(8);
    right->addWidget(makeHeading(tr("Shares"), this));
    right->addWidget(m_sliders);
    auto* beside = new QHBoxLayout;
    beside->addWidget(m_prediction, 1);
    beside->addWidget(m_best);
    right->addLayout(beside);
    right->addSpacing(8);
    right->addLayout(buildStrategies(), 1);
    auto* middle = new QHBoxLayout;
    middle->setSpacing(20);
    middle->addLayout(left, 3);
    middle->addLayout(right, 2);
    auto* layout = makeLayout<QVBoxLayout>(this, {24, 18, 24, 18}, 14);
    layout->addLayout(top);
    layout->addLayout(middle, 1);
    layout->addLayout(makeClosingRow(*this));
}

QVBoxLayout* ShardingWindow::buildMembers()
{
    m_members->growWithRows(150);
    auto* add = new QPushButton(tr("Add"), this);
    auto* remove = new QPushButton(tr("Remove"), this);
    for (QPushButton* button : {add, remove})
        button->setAutoDefault(false);
    connect(add, &QPushButton::clicked, this, [this] {
        try {
            addMember(group().devices.back());
        } catch (const Error& error) {
            end(firstLine(error), true);
        }
    });
    connect(remove, &QPushButton::clicked, this, [this] {
        if (m_members->rowCount() > 1)
            m_members->removeRow(m_members->currentRow() >= 0 ? m_members->currentRow() : m_members->rowCount() - 1);
    });
    auto* buttons = new QHBoxLayout;
    buttons->addWidget(add);
    buttons->addWidget(remove);
    buttons->addStretch(1);
    buttons->addWidget(m_apply);
    auto* layout = new QVBoxLayout;
    layout->setSpacing(8);
    layout->addWidget(makeHeading(tr("Devices that hold the stage"), this));
    layout->addWidget(m_members);
    layout->addLayout(buttons);
    return layout;
}

QVBoxLayout* ShardingWindow::buildStrategies()
{
    m_strategies->setAccessibleName(tr("Other programs and what they cost"));
    m_strategies->setHeaderLabels({tr("program"), tr("step"), tr("longer")});
    m_strategies->setRootIsDecorated(false);
    m_strategies->setUniformRowHeights(true);
    m_strategies->setFrameShape(QFrame::NoFrame);
    m_strategies->header()->setStretchLastSection(false);
    m_strategies->header()->setFont(Theme::words(TextSize::Small));
    for (const int column : {Step, Longer})
        m_strategies->headerItem()->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    m_strategies->header()->setSectionResizeMode(Strategy, QHeaderView::Stretch);
    auto* layout = new QVBoxLayout;
    layout->setSpacing(8);
    layout->addWidget(makeHeading(tr("Why this program"), this));
    layout->addWidget(m_strategies, 1);
    auto* buttons = new QHBoxLayout;
    buttons->addStretch(1);
    buttons->addWidget(m_forget);
    buttons->addWidget(m_use);
    layout->addLayout(buttons);
    return layout;
}

void ShardingWindow::showEvent(QShowEvent* event)
{
    QDialog::showEvent(event);
    if (!m_found && !m_running)
        start();
    m_flow->setFocus();
}

QString ShardingWindow::state() const
{
    return m_state->text();
}

QString ShardingWindow::prediction() const
{
    return m_prediction->text();
}

int ShardingWindow::device() const
{
    const Design& design = m_document.design();
    const int stage = m_stage->currentIndex();
    if (!design.workload || stage < 0 || stage >= design.schedule.stages())
        return -1;
    const int device = design.schedule.deviceOfStage[stage];
    return device < static_cast<int>(design.cluster.devices.size()) ? device : -1;
}

void ShardingWindow::refreshStages()
{
    const Design& design = m_document.design();
    const int before = std::max(0, m_stage->currentIndex());
    {
        const QSignalBlocker quiet(m_stage);
        m_stage->clear();
        for (int stage = 0; stage < design.schedule.stages(); ++stage)
            m_stage->addItem(
                tr("stage %1 on %2").arg(stage).arg(deviceLabel(design, design.schedule.deviceOfStage[stage])));
        m_stage->setCurrentIndex(std::min(before, m_stage->count() - 1));
    }
    refreshMembers();
}

/// A single device starts as a group of two, one of them half as fast.
void ShardingWindow::refreshMembers()
{
    m_members->setRowCount(0);
    m_apply->setEnabled(device() >= 0);
    m_start->setEnabled(device() >= 0);
    if (device() < 0)
        return;
    const DeviceSpec& lane = m_document.design().cluster.devices[device()];
    if (lane.group) {
        for (const DeviceSpec& member : lane.group->devices)
            addMember(member);
        return;
    }
    DeviceSpec slower = lane;
    slower.name += tr(", half as fast").toStdString();
    slower.peakFlops /= 2;
    addMember(lane);
    addMember(slower);
}

void ShardingWindow::addMember(const DeviceSpec& device)
{
    std::vector<ValueCell> cells;
    for (const QString& text : memberTexts(device))
        cells.push_back({text, true, {}, cells.size() != Name});
    m_members->appendRow(cells);
}

Cluster ShardingWindow::group() const
{
    const Cluster& cluster = m_document.design().cluster;
    const DeviceSpec& lane = cluster.devices[device()];
    Cluster group = lane.group ? *lane.group : Cluster{};
    if (!lane.group)
        group.link = cluster.link;
    const std::vector<DeviceSpec> before = group.devices;
    group.devices.clear();
    for (int row = 0; row < m_members->rowCount(); ++row) {
        const auto text = [&](int column) {
            const QTableWidgetItem* item = m_members->item(row, column);
            return item ? item->text().trimmed() : QString();
        };
        DeviceSpec member = row < std::ssize(before) ? before[row] : lane;
        member.group.reset();
        member.name = text(Name).toStdString();
        member.peakFlops = parseFlops(typedQuantity(text(Rate)), "rate");
        member.efficiency = 1;
        member.memory = text(Memory).isEmpty() ? 0 : parseSize(typedQuantity(text(Memory)), "memory");
        group.devices.push_back(std::move(member));
    }
    group.name = tr("%1 devices").arg(group.devices.size()).toStdString();
    if (group.devices.size() != before.size())
        group.linkOfPair.clear(), group.collectives.clear(); // measured for another number of devices
    return group;
}

void ShardingWindow::start()
{
    const int generation = ++m_generation;
    m_stop.request_stop(); // the running synthesis: its result is no longer needed
    m_stop = std::stop_source();
    m_found.reset();
    m_use->setEnabled(false);
    m_forget->setEnabled(false);
    m_strategies->clear();
    m_flow->clear();
    m_prediction->clear();
    m_sliders->setDevices({}, {});
    const Design& design = m_document.design();
    if (device() < 0) {
        end(design.workload ? tr("this stage's device is not described") : tr("this design has costs but no model"),
            true);
        return;
    }
    DeviceSpec lane;
    try {
        lane = isAsInDesign() ? design.cluster.devices[device()] : asOneDevice(group());
    } catch (const Error& error) {
        end(firstLine(error), true);
        return;
    }
    const std::size_t stage = m_stage->currentIndex();
    if (design.layersPerStage.size() <= stage) {
        end(tr("this design does not say which layers the stage has"), true);
        return;
    }
    const int first = std::accumulate(design.layersPerStage.begin(),
                                      design.layersPerStage.begin() + static_cast<std::ptrdiff_t>(stage), 0);
    m_running = true;
    m_start->setEnabled(false);
    m_state->setText(tr("synthesising …"));
    setTone(m_state, Tone::Dim);
    m_worker.start([this, generation, stop = m_stop.get_token(), workload = *design.workload, first,
                    count = design.layersPerStage[stage], lane, number = m_stage->currentIndex()] {
        auto found = std::make_shared<Found>();
        found->number = number;
        found->lane = lane;
        QString wrong;
        try {
            sharding::SharedStages stages;
            found->stage = stages.plan(workload, first, count, lane, {}, stop);
            const sharding::SharedStage& shared = found->stage;
            sharding::PlanOptions options;
            options.maxExpansions = 100'000;
            options.deadline = {std::chrono::steady_clock::now() + longestSearch, stop};
            found->strategies.push_back({tr("found: HAP").toStdString(), shared.plan.program, shared.plan.ratios,
                                         shared.plan.cost, true, sharding::Strategy::Hap});
            for (auto list : {runnersUp(shared.graph, shared.machine, shared.plan, options, runnersShown),
                              commonStrategies(shared.graph, shared.machine, options)})
                for (sharding::Alternative& strategy : list)
                    found->strategies.push_back(std::move(strategy));
        } catch (const Error& error) {
            wrong = firstLine(error);
        }
        QMetaObject::invokeMethod(
            this,
            [this, generation, found, wrong] {
                if (m_generation != generation)
                    return;
                if (wrong.isEmpty())
                    settle(found);
                else
                    end(wrong, true);
            },
            Qt::QueuedConnection);
    });
}

void ShardingWindow::settle(std::shared_ptr<Found> found)
{
    m_found = std::move(found);
    const sharding::ShardingPlan& plan = m_found->stage.plan;
    std::vector<QString> names;
    for (int row = 0; row < m_members->rowCount(); ++row)
        names.push_back(m_members->item(row, Name)->text());
    m_sliders->setDevices(names, plan.ratios.front());
    listStrategies();
    m_strategies->setCurrentItem(m_strategies->topLevelItem(0));
    refreshOwn();
    const QString states = QLocale(QLocale::English).toString(qlonglong(plan.expansions));
    end(plan.proved ? tr("%1 a microbatch, proved best at these shares · %2 states").arg(secondsText(plan.cost), states)
                    : tr("%1 a microbatch, at most %2 above the best · %3 states")
                          .arg(secondsText(plan.cost), percentText(plan.gap), states),
        false);
}

void ShardingWindow::listStrategies()
{
    const QSignalBlocker quiet(m_strategies);
    m_strategies->clear();
    const sharding::ShardingPlan& plan = m_found->stage.plan;
    for (const sharding::Alternative& strategy : m_found->strategies) {
        auto* item = new QTreeWidgetItem(m_strategies);
        item->setText(Strategy, QString::fromStdString(strategy.name));
        item->setToolTip(Strategy, item->text(Strategy));
        item->setText(Step, secondsText(strategy.cost));
        item->setText(Longer, strategy.fits ? signedPercent(strategy.cost / plan.cost - 1) : tr("does not fit"));
        for (const int column : {Step, Longer}) {
            item->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
            item->setFont(column, Theme::numbers(TextSize::Small));
        }
        item->setSizeHint(Strategy, {0, 24});
    }
}

void ShardingWindow::end(const QString& state, bool bad)
{
    m_running = false;
    m_start->setEnabled(device() >= 0);
    m_state->setText(state);
    setTone(m_state, bad ? Tone::Bad : Tone::Dim);
    Q_EMIT finished();
}

void ShardingWindow::showStrategy(int strategy)
{
    if (!m_found || strategy < 0 || strategy >= static_cast<int>(m_found->strategies.size()))
        return;
    m_strategy = strategy;
    m_sliders->setShares(m_found->strategies[strategy].ratios.front());
    showShares();
}

/// Costs are functions of the shares, so this needs no synthesis.
void ShardingWindow::showShares()
{
    if (!m_found)
        return;
    const sharding::SharedStage& stage = m_found->stage;
    const sharding::Alternative& strategy = m_found->strategies[m_strategy];
    const sharding::Ratios ratios(strategy.ratios.size(), m_sliders->shares());
    const double cost = costOf(strategy.program, stage.machine, ratios);
    m_flow->setProgram(strategy.program, stage.graph, stage.machine, ratios);
    QString text = tr("%1 a microbatch, best %2 (%3)")
                       .arg(secondsText(cost), secondsText(stage.plan.cost), signedPercent(cost / stage.plan.cost - 1));
    const std::vector<double> bytes = memoryOf(strategy.program, ratios);
    for (const int d : devicesOverfull(bytes, stage.machine))
        text += tr("; device %1 needs %2").arg(d).arg(sizeText(static_cast<Bytes>(bytes[d])));
    m_prediction->setText(text + designText());
    m_use->setEnabled(isOfDesign() && !showsOwn());
    m_forget->setEnabled(isOfDesign() && m_found->own);
}

void ShardingWindow::apply()
{
    if (device() < 0)
        return;
    const int lane = device();
    Cluster cluster = m_document.design().cluster;
    try {
        cluster.devices[lane] = asOneDevice(group());
    } catch (const Error& error) {
        end(firstLine(error), true);
        return;
    }
    m_state->setText(tr("working out the stages of device %1 …").arg(lane));
    m_apply->setEnabled(false);
    m_worker.start([this, generation = m_generation.load(), lane, base = m_document.design(), cluster] {
        Design changed;
        QString wrong;
        try {
            changed = withCluster(base, cluster);
        } catch (const Error& error) {
            wrong = firstLine(error);
        }
        QMetaObject::invokeMethod(
            this,
            [this, generation, lane, base, changed, wrong] {
                m_apply->setEnabled(true);
                if (m_generation != generation)
                    return;
                if (!wrong.isEmpty() || !(m_document.design() == base)) {
                    end(wrong.isEmpty() ? tr("the design changed meanwhile; try again") : wrong, true);
                    return;
                }
                m_document.replaceDesign(changed, tr("Shard device %1").arg(lane));
                end(base.costs.source.compare(0, 7, "formula") == 0
                        ? tr("device %1 is a group now; its stages cost what their programs do").arg(lane)
                        : tr("device %1 is a group now; costs that were given or measured stay").arg(lane),
                    false);
                Q_EMIT applied();
            },
            Qt::QueuedConnection);
    });
}

} // namespace pipewright

#include "moc_shardingwindow.cpp"
