// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/search/searchwindow.h"

#include "core/design/costorigins.h"
#include "gui/compare/comparelanes.h"
#include "gui/compare/comparetable.h"
#include "gui/search/searchcurve.h"
#include "gui/widgets/closingrow.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/onscreen.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/words.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QLineEdit>
#include <QPushButton>
#include <QSplitter>
#include <QTableWidget>

#include <algorithm>
#include <set>
#include <thread>

namespace pipewright {

namespace {

enum Limit { OfDevices, Factor, Size };

QString wordsOf(const Diagnostics& diagnostics)
{
    QStringList lines;
    for (const Diagnostic& diagnostic : diagnostics) {
        QString line = QString::fromStdString(diagnostic.what);
        if (!diagnostic.where.empty())
            line.prepend(QString::fromStdString(diagnostic.where) + QStringLiteral(": "));
        if (!diagnostic.hint.empty())
            line += QStringLiteral(" (%1)").arg(QString::fromStdString(diagnostic.hint));
        lines << line;
    }
    return lines.join(QLatin1Char('\n'));
}

} // namespace

SearchWindow::SearchWindow(Document& document, std::function<std::vector<Block>()> selectedBlocks, QWidget* parent)
    : QDialog(parent), m_document(document), m_selectedBlocks(std::move(selectedBlocks)), m_scope(new QComboBox(this)),
      m_limit(new QComboBox(this)), m_objective(new QComboBox(this)), m_factor(new DecimalField(this)),
      m_size(new QLineEdit(this)), m_seconds(new DecimalField(this)), m_threads(new CountField(this)),
      m_button(new QPushButton(tr("Search"), this)), m_keep(new QPushButton(tr("Keep this schedule"), this)),
      m_state(makeCaption({}, TextSize::Normal, this)), m_why(makeCaption({}, TextSize::Small, this)),
      m_curve(new SearchCurve(this)), m_lanes(new CompareLanes(this)), m_table(makeCompareTable(this))
{
    onThemeChange(this, [this] {
        if (isVisible()) {
            setState(state(), m_bad);
            refreshFound();
        }
    });
    setWindowTitle(tr("Search for a better order"));
    setWindowFlag(Qt::WindowMinMaxButtonsHint);
    makePanel(this);
    m_worker.setMaxThreadCount(1);
    build();
    connect(m_button, &QPushButton::clicked, this, [this] { m_running ? cancel() : start(); });
    connect(m_keep, &QPushButton::clicked, this, &SearchWindow::keep);
    connect(m_limit, &QComboBox::currentIndexChanged, this, [this](int limit) {
        m_factor->setVisible(limit == Factor);
        m_size->setVisible(limit == Size);
    });
    connect(&m_document, &Document::designChanged, this, &SearchWindow::refreshScope);
    connect(&m_document, &Document::designChanged, this, &SearchWindow::refreshFound);
    m_limit->setCurrentIndex(OfDevices);
    m_factor->hide();
    m_size->hide();
    refreshScope();
    refreshFound();
    resizeOnScreen(*this, {1200, 800});
}

SearchWindow::~SearchWindow()
{
    ++m_generation;
    m_stop.request_stop();
    m_worker.waitForDone();
}

QFormLayout* SearchWindow::buildSettings()
{
    m_scope->addItems({tr("every block"), tr("the selected blocks"), tr("the unplaced blocks")});
    m_scope->setToolTip(tr("All other blocks keep the order that they have on their device"));
    m_scope->setAccessibleName(tr("What may move"));
    m_limit->addItems({tr("what the devices have"), tr("a multiple"), tr("a size")});
    m_limit->setAccessibleName(tr("Memory limit"));
    m_factor->setRange(0.05, 1000);
    m_factor->setSingleStep(0.25);
    m_factor->setValue(1);
    m_factor->setSuffix(tr("\u00a0×"));
    m_factor->setToolTip(tr("Of as many microbatches of activations as there are devices: 1 × is what 1F1B keeps"));
    m_factor->setAccessibleName(tr("Memory limit as a multiple"));
    m_size->setPlaceholderText(tr("80GiB"));
    m_size->setToolTip(tr("All of a device's memory, weights and buffers included"));
    m_size->setAccessibleName(tr("Memory limit as a size"));
    m_objective->addItems({tr("makespan"), tr("span of a device")});
    m_objective->setToolTip(tr(
        "The whole step, or the longest time from a device's first block to its last, as in the zero-bubble papers"));
    m_objective->setAccessibleName(tr("What is to be short"));
    m_seconds->setRange(0.1, 86'400);
    m_seconds->setDecimals(1);
    m_seconds->setValue(10);
    m_seconds->setSuffix(tr("\u00a0s"));
    m_seconds->setAccessibleName(tr("Time limit"));
    m_threads->setRange(1, 256);
    m_threads->setValue(std::max(1, static_cast<int>(std::thread::hardware_concurrency()) - 1));
    m_threads->setAccessibleName(tr("Threads"));

    auto* memory = new QVBoxLayout;
    memory->setSpacing(6);
    memory->addWidget(m_limit);
    memory->addWidget(m_factor);
    memory->addWidget(m_size);
    auto* form = new QFormLayout;
    form->setLabelAlignment(Qt::AlignLeft);
    form->setVerticalSpacing(10);
    form->setHorizontalSpacing(14);
    form->addRow(makeCaption(tr("may move"), TextSize::Normal, this), m_scope);
    form->addRow(makeCaption(tr("memory"), TextSize::Normal, this), memory);
    form->addRow(makeCaption(tr("make short"), TextSize::Normal, this), m_objective);
    form->addRow(makeCaption(tr("at most"), TextSize::Normal, this), m_seconds);
    form->addRow(makeCaption(tr("threads"), TextSize::Normal, this), m_threads);
    return form;
}

void SearchWindow::build()
{
    m_button->setDefault(true);
    m_button->setProperty("primary", true);
    m_keep->setAutoDefault(false);
    m_keep->setToolTip(tr("The schedule found replaces the present one; one undo brings that back"));
    m_state->setWordWrap(true);
    m_state->setAccessibleName(tr("State of the search"));
    m_why->setWordWrap(true);
    m_why->setAccessibleName(tr("Why nothing can be shorter than the bound"));

    auto* settings = new QVBoxLayout;
    settings->setSpacing(14);
    settings->addLayout(buildSettings());
    settings->addWidget(m_button);
    settings->addWidget(m_state);
    settings->addStretch(1);
    auto* live = new QVBoxLayout;
    live->setSpacing(6);
    live->addWidget(m_curve, 1);
    live->addWidget(m_why);
    auto* top = new QWidget(this);
    auto* topRow = makeLayout<QHBoxLayout>(top, {0, 0, 0, 0}, 24);
    topRow->addLayout(settings);
    topRow->addLayout(live, 1);
    for (QWidget* field :
         std::initializer_list<QWidget*>{m_scope, m_limit, m_factor, m_size, m_objective, m_seconds, m_threads})
        field->setMinimumWidth(190);
    for (QAbstractSpinBox* field : std::initializer_list<QAbstractSpinBox*>{m_factor, m_seconds, m_threads})
        field->setButtonSymbols(QAbstractSpinBox::NoButtons);

    auto* splitter = new QSplitter(Qt::Horizontal, this);
    splitter->addWidget(m_lanes);
    splitter->addWidget(m_table);
    splitter->setStretchFactor(0, 1);
    splitter->setSizes({640, 480});
    splitter->setChildrenCollapsible(false);
    auto* layout = makeLayout<QVBoxLayout>(this, {24, 18, 24, 18}, 14);
    layout->addWidget(top);
    layout->addWidget(splitter, 1);
    layout->addLayout(makeClosingRow(*this, m_keep));
}

void SearchWindow::showEvent(QShowEvent* event)
{
    QDialog::showEvent(event);
    refreshScope();
    refreshFound();
}

QString SearchWindow::state() const
{
    return m_state->text();
}

void SearchWindow::setState(const QString& text, bool bad)
{
    m_bad = bad;
    m_state->setText(text);
    setTone(m_state, bad ? Tone::Bad : Tone::Plain);
}

void SearchWindow::setScope(Scope scope)
{
    m_scope->setCurrentIndex(static_cast<int>(scope));
}

void SearchWindow::refreshScope()
{
    if (!m_running && !unplacedBlocks(m_document.design().schedule).empty()
        && m_scope->currentIndex() == static_cast<int>(Scope::Everything))
        setScope(Scope::Unplaced);
}

/// All placed blocks that must not move.
std::vector<Block> SearchWindow::locked() const
{
    const auto scope = static_cast<Scope>(m_scope->currentIndex());
    if (scope == Scope::Everything)
        return {};
    std::set<Block> free;
    if (scope == Scope::Selected)
        for (const Block& block : m_selectedBlocks())
            free.insert(block);
    std::vector<Block> kept;
    for (const auto& lane : m_document.design().schedule.order)
        for (const Block& block : lane)
            if (!free.contains(block))
                kept.push_back(block);
    return kept;
}

SearchOptions SearchWindow::options() const
{
    SearchOptions options;
    if (m_limit->currentIndex() == Factor)
        options.limit.factor = m_factor->value();
    else if (m_limit->currentIndex() == Size)
        options.limit.bytes = parseSize(typedQuantity(m_size->text()), tr("memory limit").toStdString());
    options.objective = m_objective->currentIndex() == 0 ? SearchObjective::Makespan : SearchObjective::Span;
    options.timeLimit = std::chrono::milliseconds(static_cast<std::int64_t>(m_seconds->value() * 1000));
    options.threads = m_threads->value();
    options.locked = locked();
    return options;
}

void SearchWindow::start()
{
    if (m_running)
        return;
    SearchOptions options;
    try {
        if (m_scope->currentIndex() == static_cast<int>(Scope::Selected) && m_selectedBlocks().empty())
            throw Error({}, tr("no block is selected").toStdString(),
                        tr("select the blocks that may move in the timeline").toStdString());
        options = this->options();
    } catch (const Error& error) {
        setState(wordsOf(error.diagnostics()), true);
        return;
    }
    const int generation = ++m_generation;
    m_base = m_document.design();
    m_found.reset();
    m_running = true;
    m_wanted = m_seconds->value();
    m_button->setText(tr("Cancel"));
    m_why->clear();
    m_curve->clear(m_document.prediction() && unplacedBlocks(m_base.schedule).empty()
                       ? (options.objective == SearchObjective::Span ? m_document.prediction()->metrics.span
                                                                     : m_document.prediction()->metrics.makespan)
                       : 0);
    setState(tr("searching …"), false);
    refreshFound();
    m_stop = std::stop_source();
    options.stop = m_stop.get_token();
    const auto here = [this, generation](auto work) {
        QMetaObject::invokeMethod(
            this,
            [this, generation, work = std::move(work)]() mutable {
                if (m_generation == generation)
                    work();
            },
            Qt::QueuedConnection);
    };
    options.progress = [this, here](const SearchProgress& now) { here([this, now] { follow(now); }); };
    m_worker.start([this, here, base = m_base, options, members = m_document.memberPredictor()] {
        try {
            auto found = std::make_shared<Found>();
            found->result = search(base, options);
            found->design = base;
            found->design.buildingBlock.reset();
            found->design.schedule = found->result.schedule;
            found->prediction = std::make_shared<const Prediction>(
                members->predictPlaced(found->design, MemberPredictor::Patience::Any));
            here([this, found] { settle(found); });
        } catch (const Error& error) {
            here([this, why = wordsOf(error.diagnostics())] { refuse(why); });
        } catch (const std::exception& error) {
            here([this, why = QString::fromUtf8(error.what())] { refuse(why); });
        }
    });
}

void SearchWindow::cancel()
{
    m_stop.request_stop();
    if (m_running)
        setState(tr("stopping …"), false);
}

void SearchWindow::follow(const SearchProgress& now)
{
    m_curve->append({now.seconds, now.best, now.bound});
    if (m_stop.stop_requested())
        return;
    const QString gap = now.best > 0
                            ? tr(" · gap at most %1").arg(percentText(double(now.best - now.bound) / double(now.best)))
                            : QString();
    setState(tr("searching · %1\u00a0s of %2\u00a0s").arg(now.seconds, 0, 'f', 1).arg(m_wanted, 0, 'f', 1) + gap,
             false);
}

void SearchWindow::settle(std::shared_ptr<const Found> found)
{
    const SearchResult& result = found->result;
    m_curve->append({result.history.empty()
                         ? 0.0
                         : std::max(result.history.back().seconds,
                                    m_curve->points().empty() ? 0.0 : m_curve->points().back().seconds),
                     result.value, result.bound.value});
    m_why->setText(tr("Bound: %1").arg(QString::fromStdString(result.bound.why)));
    const bool same = found->design.schedule.order == m_base.schedule.order;
    std::vector<Op> ops{Op::F, Op::B, Op::I, Op::W};
    if (!found->design.schedule.recompute.empty())
        ops.push_back(Op::R);
    const QString costs = QString::fromStdString(originsText(found->design, ops));
    QString verdict =
        !result.unproved.empty() ? tr("Nothing is proved: %1. %2 above the bound for these costs (%3).")
                                       .arg(QString::fromStdString(result.unproved), percentText(result.gap), costs)
        : result.proved
            ? tr("Proved for these costs: no order is shorter (%1).").arg(costs)
            : tr("At most %1 above the best possible for these costs (%2).").arg(percentText(result.gap), costs);
    if (same)
        verdict = tr("The present order is the best found. ") + verdict;
    else if (!result.history.empty())
        verdict = tr("Found by %1. ").arg(QString::fromStdString(result.history.back().source)) + verdict;
    if (result.cancelled)
        verdict.prepend(tr("Cancelled. "));
    m_found = std::move(found);
    end(verdict);
}

void SearchWindow::refuse(const QString& why)
{
    end(why, true);
}

void SearchWindow::end(const QString& state, bool bad)
{
    m_running = false;
    m_button->setText(tr("Search"));
    setState(state, bad);
    refreshFound();
    Q_EMIT finished();
}

void SearchWindow::keep()
{
    if (m_found)
        m_document.replaceDesign(m_found->design, tr("Take the order that was found"));
}

/// Shows the current schedule above the result, with the numbers of both.
void SearchWindow::refreshFound()
{
    if (!isVisible())
        return;
    const Design& present = m_document.design();
    std::vector<CompareLanes::Schedule> lanes{CompareLanes::scheduleOf(
        tr("Present"), present, m_document.prediction(), tr("The placed blocks cannot run: see the conflicts"))};
    std::vector<ComparedSchedule> compared{{tr("Present"), present, m_document.prediction()}};
    if (m_found) {
        lanes.push_back(CompareLanes::scheduleOf(tr("Found"), m_found->design, m_found->prediction.get(), {}));
        compared.push_back({tr("Found"), m_found->design, m_found->prediction.get()});
    }
    m_lanes->setSchedules(std::move(lanes));
    fillCompareTable(*m_table, compared);
    m_keep->setEnabled(m_found && !(m_found->design == present));
}

} // namespace pipewright

#include "moc_searchwindow.cpp"
