// SPDX-License-Identifier: GPL-3.0-or-later
// The search and what becomes of it; planwindowlayout.cpp has the parts of the window.
#include "gui/plan/planwindow.h"

#include "core/base/formattedtext.h"
#include "core/design/costorigins.h"
#include "core/plan/planwords.h"
#include "gui/plan/filechoice.h"
#include "gui/plan/plandetails.h"
#include "gui/plan/planexport.h"
#include "gui/plan/planfields.h"
#include "gui/plan/plantable.h"
#include "gui/plan/planwork.h"
#include "gui/search/tradeoffplot.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/onscreen.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/words.h"

#include <QHideEvent>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>

#include <algorithm>
#include <utility>

namespace pipewright {

namespace {

QString pointName(const PlanSetting& setting, std::size_t index)
{
    return QStringLiteral("%1: %2").arg(index + 1).arg(QString::fromStdString(degreesText(setting)));
}

} // namespace

PlanWindow::PlanWindow(Document& document, QWidget* parent)
    : QDialog(parent), m_document(document), m_fields(new PlanFields(this)), m_table(new PlanTable(this)),
      m_plot(new TradeOffPlot(TradeOffPlot::Value::Step, this)), m_details(new PlanDetails(this)),
      m_progress(new QProgressBar(this)), m_state(new Paragraph(this)), m_costs(makeCaption({}, TextSize::Small, this)),
      m_button(new QPushButton(tr("Plan"), this)), m_copy(new QPushButton(tr("Copy"), this)),
      m_export(new QPushButton(tr("Export"), this)), m_refine(new QPushButton(tr("Refine"), this)),
      m_open(new QPushButton(tr("Open as design"), this)), m_exports(new QMenu(this)), m_search(new PlanWork(this)),
      m_unpinned(new PlanWork(this)), m_question(new PlanWork(this)), m_refinement(new PlanWork(this)),
      m_difference(new PlanWork(this))
{
    onThemeChange(this, [this] {
        setState(state(), m_bad);
        if (m_result)
            showResult();
    });
    setWindowTitle(tr("Plan"));
    setWindowFlag(Qt::WindowMinMaxButtonsHint);
    makePanel(this);
    build();
    const auto takeDesign = [this] { m_fields->setDesign(m_document.sharedDesign()); };
    connect(&m_document, &Document::designChanged, this, takeDesign);
    connect(m_button, &QPushButton::clicked, this, [this] { isRunning() ? cancel() : start(); });
    connect(m_open, &QPushButton::clicked, this, [this] { open(m_table->currentPlan()); });
    connect(m_refine, &QPushButton::clicked, this,
            [this] { m_refinement->isRunning() ? m_refinement->stop() : refine(m_table->currentPlan()); });
    connect(m_table, &PlanTable::planActivated, this, &PlanWindow::open);
    connect(m_table, &PlanTable::currentPlanChanged, this, &PlanWindow::choose);
    connect(m_plot, &TradeOffPlot::taken, this, [this](int point) { m_table->setCurrentPlan(point); });
    connect(m_details, &PlanDetails::asked, this, &PlanWindow::ask);
    connect(m_search, &PlanWork::progressed, this, &PlanWindow::follow);
    connect(m_search, &PlanWork::found, this, &PlanWindow::take);
    connect(m_search, &PlanWork::finished, this, &PlanWindow::settle);
    connect(m_search, &PlanWork::refused, this, &PlanWindow::refuse);
    connect(m_unpinned, &PlanWork::finished, this, [this](const std::shared_ptr<const PlanResult>& without) {
        m_details->setPinCosts(pinCostText(QString::fromStdString(joined(m_pins, ", ")), *m_result, *without));
        Q_EMIT answered();
    });
    connect(m_unpinned, &PlanWork::refused, this, [this](const Diagnostics& why) {
        m_details->setPinCosts(tr("What the pins cost is not known: %1").arg(proseText(why)));
        Q_EMIT answered();
    });
    connect(m_question, &PlanWork::finished, this, [this](const std::shared_ptr<const PlanResult>& with) {
        sayAnswer(answerText(m_asked, *with, *m_result));
    });
    connect(m_question, &PlanWork::refused, this, [this](const Diagnostics& why) { sayAnswer(proseText(why), true); });
    connect(m_refinement, &PlanWork::refinedTo, this, [this](const RefinedPlan& plan) {
        m_refined[m_refining] = plan;
        setState(tr("Plan %1, %2").arg(m_refining + 1).arg(QString::fromStdString(refinedText(plan))));
        showRefined();
    });
    connect(m_refinement, &PlanWork::refused, this, [this](const Diagnostics& why) {
        setState(tr("Plan %1 is not refined: ").arg(m_refining + 1) + proseText(why), true);
        showRefined();
    });
    connect(m_difference, &PlanWork::differs, this, [this](const PlanDifference& difference) {
        m_details->setChange(changeText(m_changes, difference, m_bothComplete));
        Q_EMIT compared();
    });
    connect(m_difference, &PlanWork::refused, this, [this](const Diagnostics& why) {
        m_details->setChange(tr("The difference to the list before is not known: %1").arg(proseText(why)));
        Q_EMIT compared();
    });
    takeDesign();
    refreshButtons();
    setState(tr("Choose a model, a cluster and a batch, and press Plan."));
    resizeOnScreen(*this, {1540, 860});
}

PlanWindow::~PlanWindow() = default;

bool PlanWindow::isRunning() const
{
    return m_search->isRunning();
}

QString PlanWindow::state() const
{
    return m_state->text();
}

QString PlanWindow::costs() const
{
    return m_costs->text();
}

void PlanWindow::setState(const QString& text, bool bad)
{
    m_bad = bad;
    m_state->setText(text);
    setTone(m_state, bad ? Tone::Bad : Tone::Plain);
}

void PlanWindow::start()
{
    if (isRunning())
        return;
    m_unpinned->drop();
    m_question->drop();
    m_difference->drop();
    m_refinement->drop();
    m_refined.clear();
    m_result.reset();
    PlanRequest request;
    try {
        request = m_fields->request();
    } catch (const Error& error) {
        refuse(error.diagnostics());
        return;
    }
    m_fields->showFaults({});
    m_request = request;
    m_pins = m_fields->pins();
    m_cancelled = false;
    m_found.clear(request.top);
    m_details->setPinCosts({});
    m_details->setChange({});
    m_details->setAnswer({});
    m_costs->clear();
    m_progress->setValue(0);
    m_progress->show();
    m_button->setText(tr("Cancel"));
    setState(tr("counting the ways there are …"));
    showFound();
    m_search->start(std::move(request));
    refreshButtons();
}

void PlanWindow::cancel()
{
    if (!isRunning())
        return;
    m_cancelled = true;
    m_search->stop();
    setState(tr("stopping …"));
}

void PlanWindow::hideEvent(QHideEvent* event)
{
    QDialog::hideEvent(event);
    if (event->spontaneous())
        return; // minimised: the search goes on
    cancel();
    m_unpinned->stop();
    m_question->stop();
    m_difference->stop();
    m_refinement->stop();
}

void PlanWindow::follow(const PlanProgress& now)
{
    if (m_search->isStopping())
        return;
    if (now.settings > 0)
        m_progress->setValue(
            static_cast<int>(static_cast<std::size_t>(m_progress->maximum()) * now.done / now.settings));
    const QString best = durationText(now.best);
    const QString seen =
        tr("%1 of %2 settings · %3 of %4 plans predicted, bounds leave out the others · %5\u00a0s")
            .arg(wholeText(static_cast<std::int64_t>(now.done)), wholeText(static_cast<std::int64_t>(now.settings)),
                 wholeText(now.predicted), wholeText(now.considered))
            .arg(now.seconds, 0, 'f', 1);
    setState(now.bestProved
                 ? tr("Proved by these costs: no plan is shorter than %1. Looking for the frontier: %2").arg(best, seen)
             : now.best > 0 ? tr("Best so far %1, not proved yet: %2").arg(best, seen)
                            : tr("No plan found yet: %1").arg(seen));
}

void PlanWindow::take(const std::vector<PlanFound>& plans)
{
    m_found.add(plans);
    showFound();
}

void PlanWindow::showFound()
{
    m_table->setFound(m_found.plans(), m_found.onFrontier(), m_request.noise.has_value());
    std::vector<TradeOffPlot::Point> points;
    for (std::size_t i = 0; i < m_found.plans().size(); ++i) {
        const PlanFound& plan = m_found.plans()[i];
        points.push_back({pointName(plan.setting, i), static_cast<double>(plan.peak), static_cast<double>(plan.step),
                          m_found.onFrontier()[i]});
    }
    m_plot->setPoints(std::move(points), true);
    m_plot->setPresent({}, m_request.memoryLimit.value_or(0));
    choose(m_table->currentPlan());
}

void PlanWindow::settle(std::shared_ptr<const PlanResult> result)
{
    m_result = std::move(result);
    if (m_result->plans.empty()) {
        const auto reasons = byCount(m_result->reasons);
        QString why = m_result->complete ? tr("No plan is possible") : tr("No plan was found before it stopped");
        if (!reasons.empty())
            why += tr(", mostly: %1").arg(QString::fromStdString(reasons.front().second));
        setState(why + QStringLiteral(". ")
                     + (m_result->complete ? tr("Use more devices, a smaller batch or sequence, or pin less.")
                                           : tr("Allow more time, or pin more.")),
                 true);
    } else {
        setState((!m_result->complete          ? tr("Stopped: not complete, others may be shorter")
                  : m_result->frontierComplete ? tr("Complete: by these costs no other plan is shorter")
                                               : tr("By these costs no other plan is shorter; the frontier is not "
                                                    "complete"))
                 + tr(". %1 plans: %2 predicted, %3 refused by memory, %4 by shape, %5 by batch; %6\u00a0s")
                       .arg(wholeText(m_result->considered), wholeText(m_result->predicted),
                            wholeText(m_result->refused.memory), wholeText(m_result->refused.shape),
                            wholeText(m_result->refused.batch))
                       .arg(m_result->seconds, 0, 'f', 1));
        const Design& best = m_result->plans.front().design;
        m_costs->setText(tr("All numbers are predicted. Costs: %1.").arg(QString::fromStdString(best.costs.source)));
        m_costs->setToolTip(QString::fromStdString(originsText(best, {Op::F, Op::B, Op::I, Op::W})));
        askDifference();
    }
    showResult();
    end();
    askPinCosts();
}

void PlanWindow::showResult()
{
    m_table->setResult(m_result, m_request.noise.has_value());
    std::vector<TradeOffPlot::Point> points;
    Bytes limit = m_request.memoryLimit.value_or(0);
    for (std::size_t i = 0; i < m_result->plans.size(); ++i) {
        const TrainingPlan& plan = m_result->plans[i];
        const bool onFrontier =
            std::find(m_result->frontier.begin(), m_result->frontier.end(), i) != m_result->frontier.end();
        points.push_back(
            {pointName(plan.setting, i), static_cast<double>(plan.peak), static_cast<double>(plan.step), onFrontier});
        limit = limit > 0 ? limit : plan.memory.limit;
    }
    m_plot->setPoints(std::move(points), true);
    m_plot->setPresent({}, limit);
    if (m_table->currentPlan() < 0 && !m_result->plans.empty())
        m_table->setCurrentPlan(0);
    choose(m_table->currentPlan());
}

void PlanWindow::refuse(const Diagnostics& why)
{
    const Diagnostics rest = m_fields->showFaults(why);
    setState(rest.empty() ? tr("Nothing was searched: see the field marked at the left.") : proseText(rest), true);
    m_found.clear(1);
    showFound();
    end();
}

void PlanWindow::end()
{
    m_progress->hide();
    m_button->setText(tr("Plan"));
    refreshButtons();
    Q_EMIT finished();
}

void PlanWindow::askPinCosts()
{
    if (m_pins.empty())
        return;
    if (m_cancelled || !m_result->complete) {
        m_details->setPinCosts(tr("What the pins cost was not looked for: the search was stopped."));
        return;
    }
    PlanRequest unpinned = m_request;
    static_cast<PlanSpace&>(unpinned) = {};
    unpinned.devices = m_request.devices;
    unpinned.batch = m_request.batch;
    unpinned.families = m_request.families;
    unpinned.top = 1;
    unpinned.frontier = false;
    unpinned.noise.reset();
    m_details->setPinCosts(tr("What the pins cost: looking for the best without them …"));
    m_unpinned->start(std::move(unpinned));
}

void PlanWindow::askDifference()
{
    ListBefore now{m_request, m_result};
    const std::optional<ListBefore> before = std::exchange(m_before, now);
    m_changes = before ? changesText(before->request, now.request) : QString();
    if (m_changes.isEmpty())
        return;
    m_bothComplete = before->result->complete && now.result->complete;
    m_details->setChange(tr("Against the list before (%1): looking where its plans stand …").arg(m_changes));
    m_difference->compare(*before, std::move(now));
}

void PlanWindow::refine(int plan)
{
    if (!m_result || isRunning() || plan < 0 || plan >= static_cast<int>(m_result->plans.size()))
        return;
    m_refining = plan;
    m_refinement->refine(m_request, m_result, static_cast<std::size_t>(plan));
    setState(tr("Refining plan %1, for 30\u00a0s at most: layers per stage, order of blocks, recomputation by stage, "
                "offload …")
                 .arg(plan + 1));
    refreshButtons();
}

void PlanWindow::showRefined()
{
    choose(m_table->currentPlan());
    Q_EMIT refined();
}

const Design& PlanWindow::designOf(int plan) const
{
    const auto refined = m_refined.find(plan);
    return refined != m_refined.end() ? refined->second.design
                                      : m_result->plans.at(static_cast<std::size_t>(plan)).design;
}

void PlanWindow::ask(const QString& text)
{
    if (!m_result || isRunning())
        return;
    PlanRequest fixed = m_request;
    try {
        pin(fixed, text.toStdString(), "--why");
    } catch (const Error& error) {
        m_question->drop();
        sayAnswer(proseText(error.diagnostics()), true);
        return;
    }
    m_asked = text;
    fixed.top = 1;
    fixed.frontier = false;
    fixed.noise.reset();
    m_details->setAnswer(tr("looking for the best with %1 …").arg(text));
    m_question->start(std::move(fixed));
}

void PlanWindow::sayAnswer(const QString& text, bool bad)
{
    m_details->setAnswer(text, bad);
    const auto show = [this] { // it is the last of the panel, which has no place for it before
        m_detailsScroll->verticalScrollBar()->setValue(m_detailsScroll->verticalScrollBar()->maximum());
    };
    QTimer::singleShot(0, this, show);
    Q_EMIT answered();
}

void PlanWindow::choose(int plan)
{
    if (m_result) {
        m_details->setPlan(m_result, plan);
    } else {
        const std::vector<PlanFound>& found = m_found.plans();
        const bool is = plan >= 0 && plan < static_cast<int>(found.size());
        m_details->setFound(is ? &found[static_cast<std::size_t>(plan)] : nullptr);
    }
    const auto refined = m_refined.find(plan);
    m_details->setRefined(refined == m_refined.end() ? QString()
                                                     : QString::fromStdString(refinedText(refined->second)));
    m_plot->setCurrent(plan);
    refreshButtons();
}

void PlanWindow::refreshButtons()
{
    const bool isChosen = m_result && m_table->currentPlan() >= 0;
    m_open->setEnabled(isChosen);
    m_export->setEnabled(isChosen);
    m_refine->setEnabled(isChosen && !m_refinement->isStopping());
    m_refine->setText(m_refinement->isRunning() ? tr("Stop") : tr("Refine"));
    m_copy->setEnabled(m_result && !m_result->plans.empty());
    m_details->setAskable(m_result && !isRunning());
}

void PlanWindow::open(int plan)
{
    if (!m_result || plan < 0 || plan >= static_cast<int>(m_result->plans.size()))
        return;
    const TrainingPlan& chosen = m_result->plans[static_cast<std::size_t>(plan)];
    m_document.replaceDesign(designOf(plan),
                             tr("Take the plan %1").arg(planText(chosen.setting, *chosen.family, chosen.chunks)));
    setState((m_refined.contains(plan) ? tr("Plan %1, refined, is the design now; Ctrl+Z brings the one before back.")
                                       : tr("Plan %1 is the design now; Ctrl+Z brings the one before back."))
                 .arg(plan + 1));
}

bool PlanWindow::exportTo(int plan, std::string_view format, const QString& path)
{
    try {
        const Diagnostics notes = exportPlan(designOf(plan), format, path.toStdString());
        setState(tr("Plan %1 is written to %2. ").arg(plan + 1).arg(path) + proseText(notes));
        return true;
    } catch (const Error& error) {
        setState(tr("Plan %1 is not written: ").arg(plan + 1) + proseText(error), true);
        return false;
    }
}

void PlanWindow::askForExport(std::string_view format)
{
    const int plan = m_table->currentPlan();
    const ExportFormat& as = exportFormat(format);
    const QString extension = QString::fromUtf8(as.extension);
    chooseFile(this, tr("Export plan %1: %2").arg(plan + 1).arg(QString::fromUtf8(as.title)),
               QStringLiteral("*.%1").arg(extension), QStringLiteral("plan-%1.%2").arg(plan + 1).arg(extension),
               [this, plan, result = m_result, format](const QString& path) {
                   if (result == m_result) // another list may have taken its place
                       exportTo(plan, format, path);
               });
}

} // namespace pipewright

#include "moc_planwindow.cpp"
