// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/experiment/experimentwindow.h"

#include "core/base/formattedtext.h"
#include "core/base/textfile.h"
#include "core/files/designfile.h"
#include "core/predict/predict.h"
#include "core/predict/stability.h"
#include "core/predict/stepcosts.h"
#include "executor/experiment/experimentreport.h"
#include "executor/run/run.h"
#include "gui/experiment/lossplot.h"
#include "gui/experiment/stabilityplot.h"
#include "gui/widgets/closingrow.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/onscreen.h"
#include "gui/widgets/valuetable.h"
#include "gui/widgets/words.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QEvent>
#include <QFileDialog>
#include <QListWidget>
#include <QMessageBox>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QTabWidget>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr int rowsPerStage = 2; ///< rows of data per update

QString lossText(const Spread& loss, int seeds)
{
    if (!std::isfinite(loss.mean))
        return QObject::tr("diverged");
    return seeds > 1 ? QStringLiteral("%1 ± %2").arg(loss.mean, 0, 'f', 3).arg(loss.range / 2, 0, 'f', 3)
                     : QString::number(loss.mean, 'f', 3);
}

QString numbersText(const std::vector<int>& numbers)
{
    return numbers.empty() ? QStringLiteral("–") : QString::fromStdString(joined(numbers, " "));
}

QString rateOf(double rate)
{
    return QString::number(rate, 'g', 3);
}

} // namespace

ExperimentWindow::ExperimentWindow(Document& document, QWidget* parent) : QDialog(parent), m_document(document)
{
    setWindowTitle(tr("Train and compare weight policies"));
    setWindowFlag(Qt::WindowMinMaxButtonsHint);
    makePanel(this);
    auto* tabs = new QTabWidget(this);
    QWidget* settings = makeSettings();
    tabs->addTab(makeTraining(), tr("Training"));
    tabs->addTab(makeLesson(), tr("What the policy costs"));
    tabs->addTab(makeCosts(), tr("Costs of a step"));
    tabs->setDocumentMode(true);
    auto* beside = new QHBoxLayout;
    beside->setSpacing(20);
    beside->addWidget(settings);
    beside->addWidget(tabs, 1);
    auto* layout = makeLayout<QVBoxLayout>(this, {24, 18, 24, 18}, 14);
    layout->addLayout(beside, 1);
    layout->addLayout(makeClosingRow(*this));

    connect(&m_process, &ExperimentProcess::progressed, this, &ExperimentWindow::takeProgress);
    connect(&m_process, &ExperimentProcess::runFinished, this, [this](ExperimentRun run) {
        // The loss curve comes from the progress of updates; the other results come when the run ends.
        const auto& curves = m_plot->curves();
        if (run.design < curves.size() && run.seed >= 1 && run.seed <= curves[run.design].seeds.size())
            run.losses = curves[run.design].seeds[run.seed - 1];
        m_runs.push_back(std::move(run));
        refreshResults();
    });
    connect(&m_process, &ExperimentProcess::message, this, [this](const QString& line) { m_warnings << line; });
    connect(&m_process, &ExperimentProcess::finished, this, &ExperimentWindow::end);
    connect(&m_document, &Document::designChanged, this, &ExperimentWindow::refreshDocument);
    m_made = true;
    refreshDocument();
    resizeOnScreen(*this, {1180, 700});
}

PolicyComparison ExperimentWindow::comparison() const
{
    PolicyComparison comparison;
    comparison.model = m_model->currentData().toString().toStdString();
    comparison.stages = m_stageCount->value();
    comparison.rows = rowsPerStage * comparison.stages;
    comparison.optimizer = *optimizerNamed(m_optimizer->currentData().toString().toStdString());
    return comparison;
}

Design ExperimentWindow::designOf(int row) const
{
    const auto policies = comparablePolicies();
    if (row < static_cast<int>(policies.size()))
        return policyDesign(policies[row], comparison());
    return trainableDesign(m_document.design());
}

void ExperimentWindow::refreshDocument()
{
    QListWidgetItem* own = m_policies->item(m_policies->count() - 1);
    own->setText(tr("this design"));
    own->setToolTip(QString::fromStdString(m_document.design().name)); // the list has no room for it
    refreshPolicies();
}

void ExperimentWindow::refreshPolicies()
{
    for (int row = 0; row < m_policies->count(); ++row) {
        QListWidgetItem* item = m_policies->item(row);
        QString why;
        try {
            designOf(row);
        } catch (const Error& error) {
            why = proseText(error.diagnostics().front());
        }
        // An untrainable policy stays in the list with the reason and cannot be checked.
        item->setFlags(why.isEmpty() ? item->flags() | Qt::ItemIsUserCheckable
                                     : item->flags() & ~Qt::ItemIsUserCheckable);
        if (!why.isEmpty())
            item->setCheckState(Qt::Unchecked);
        item->setForeground(why.isEmpty() ? Theme::of(*this).text : Theme::of(*this).dim);
        item->setToolTip(why);
    }
    refreshLesson();
    refreshCosts();
}

void ExperimentWindow::refreshCosts()
{
    if (!m_made)
        return;
    std::vector<std::vector<ValueCell>> rows;
    std::vector<StepCosts> known(static_cast<std::size_t>(m_policies->count()));
    Bytes largest = 0; // gives the unit of all of them
    for (int row = 0; row < m_policies->count(); ++row) {
        const QString name = m_policies->item(row)->text();
        rows.push_back({{name, false, {}, false}});
        try {
            std::shared_ptr<const Prediction> made;
            const Prediction* prediction = m_document.prediction();
            if (row + 1 < m_policies->count()) {
                made = std::make_shared<const Prediction>(predict(designOf(row)));
                prediction = made.get();
            }
            if (prediction == nullptr)
                throw Error("schedule", "there is no prediction of it", "resolve its conflicts");
            const StepCosts costs = known[row] = stepCosts(prediction->program, prediction->timeline);
            largest = std::max({largest, costs.activations, costs.allActivations, costs.parameters,
                                costs.gradientTraffic, costs.weightTraffic, costs.boundaryTraffic});
        } catch (const Error& error) {
            rows.back().front().tip = proseText(error);
            rows.back().resize(static_cast<std::size_t>(m_costs->columnCount()), ValueCell{QStringLiteral("–")});
        }
    }
    for (std::size_t row = 0; row < rows.size(); ++row) {
        if (rows[row].size() > 1)
            continue; // it has none
        const StepCosts& costs = known[row];
        rows[row].push_back({QString::number(costs.devices)});
        for (const Bytes size : {costs.activations, costs.allActivations, costs.parameters, costs.gradientTraffic,
                                 costs.weightTraffic, costs.boundaryTraffic})
            rows[row].push_back({sizeAmong(size, largest)});
        rows[row].push_back({QString::number(costs.transfersInRow)});
    }
    m_costs->setRows(rows);
}

void ExperimentWindow::refreshLesson()
{
    if (!m_made)
        return;
    const int row = m_policies->currentRow();
    std::vector<StageLesson> lessons;
    QString why;
    try {
        if (row >= 0)
            lessons = lessonOf(designOf(row), m_momentum->value());
    } catch (const Error& error) {
        why = proseText(error.diagnostics().front());
    }
    const QString name = row >= 0 ? m_policies->item(row)->text() : QString();
    m_filling = true;
    Bytes largest = 0;
    for (const StageLesson& lesson : lessons)
        largest = std::max(largest, lesson.weights.bytes);
    std::vector<std::vector<ValueCell>> rows;
    for (const StageLesson& lesson : lessons)
        rows.push_back({{QString::number(lesson.weights.stage)},
                        {QString::number(lesson.weights.staleness)},
                        {QString::number(lesson.weights.forwardSteps)},
                        {QString::number(lesson.weights.versions)},
                        {QString::number(lesson.weights.copies)},
                        {sizeAmong(lesson.weights.bytes, largest)},
                        {rateOf(lesson.stableRate), false, {}, true, m_rate->value() > lesson.stableRate}});
    m_stages->setRows(rows);
    m_filling = false;
    m_stability->setPresent(m_momentum->value(), m_rate->value());
    if (lessons.empty()) {
        m_stability->setPolicy(0, 0);
        m_lesson->setText(
            !why.isEmpty()
                ? why
                : tr("%1: every update is a flush. Nothing is stale, one copy of the weights is held, and the pipeline "
                     "runs empty before each update.")
                      .arg(name));
        return;
    }
    // The current row's stage, else the one with the largest staleness.
    std::size_t chosen = 0;
    for (std::size_t i = 1; i < lessons.size(); ++i)
        if (lessons[i].weights.staleness > lessons[chosen].weights.staleness)
            chosen = i;
    if (m_stages->currentRow() >= 0 && m_stages->currentRow() < static_cast<int>(lessons.size()))
        chosen = static_cast<std::size_t>(m_stages->currentRow());
    const StageLesson& lesson = lessons[chosen];
    const int staleness = lesson.weights.staleness, steps = std::min(lesson.weights.forwardSteps, staleness);
    m_stability->setPolicy(staleness, steps);
    QString text = tr("%1, stage %2: gradients are taken %3 updates late and %4 copies of the weights are held. On one "
                      "weight with loss w²/2 and "
                      "momentum %5 that settles up to a learning rate of %6.")
                       .arg(name)
                       .arg(lesson.weights.stage)
                       .arg(staleness)
                       .arg(lesson.weights.copies)
                       .arg(m_momentum->value())
                       .arg(rateOf(lesson.stableRate));
    if (steps > 0) {
        const double bare = largestStableRate(0, staleness, 0), predicted = largestStableRate(0, staleness, steps);
        text +=
            tr(" Without prediction it would be %1: prediction %2 the range here. Prediction helps only with momentum, "
               "here from %3 on; without "
               "momentum it narrows the range, from %4 to %5.")
                .arg(rateOf(lesson.stableRateUnpredicted),
                     lesson.stableRate > lesson.stableRateUnpredicted ? tr("widens") : tr("narrows"),
                     QString::number(momentumWherePredictionHelps(staleness), 'f', 2), rateOf(bare), rateOf(predicted));
    }
    m_lesson->setText(text);
}

void ExperimentWindow::start()
{
    if (isRunning())
        return;
    m_folder = std::make_unique<QTemporaryDir>();
    ExperimentRequest request;
    request.program = m_program;
    try {
        for (int row = 0; row < m_policies->count(); ++row) {
            if (m_policies->item(row)->checkState() != Qt::Checked)
                continue;
            const QString path = m_folder->filePath(QStringLiteral("%1.json").arg(row));
            writeDesign(designOf(row), path.toStdString(), false);
            request.files << path;
        }
    } catch (const Error& error) {
        m_state->setText(proseText(error.diagnostics().front()));
        return;
    }
    if (request.files.isEmpty()) {
        m_state->setText(tr("Tick at least one policy."));
        return;
    }
    request.updates = m_updates->value();
    request.seeds = m_seeds->value();
    request.optimizer = m_optimizer->currentData().toString();
    request.learningRate = m_rate->value();
    request.momentum = m_momentum->value();
    m_runs.clear();
    m_warnings.clear();
    m_plot->begin(request.updates);
    refreshResults();
    m_progress->setValue(0);
    m_progress->show();
    m_button->setText(tr("Cancel"));
    m_state->setText(tr("starting …"));
    m_process.start(request);
}

void ExperimentWindow::cancel()
{
    m_state->setText(tr("ending …"));
    m_process.cancel();
}

void ExperimentWindow::takeProgress(const ExperimentProgress& now, double secondsLeft)
{
    const int designs = std::max(1, now.runs / std::max(1, m_seeds->value()));
    m_plot->append(static_cast<std::size_t>(now.run % designs), now.design, now.run % designs == 0, now.seed, now.loss);
    m_progress->setValue(static_cast<int>(1000 * now.fraction()));
    m_state->setText(
        tr("run %1 of %2 · %3 · about %4 left")
            .arg(now.run + 1)
            .arg(now.runs)
            .arg(QString::fromStdString(now.design), durationText(static_cast<Nanoseconds>(secondsLeft * 1e9))));
}

void ExperimentWindow::end(bool cancelled, const QString& reason)
{
    m_progress->hide();
    m_button->setText(tr("Train"));
    m_save->setEnabled(!m_runs.empty());
    if (!reason.isEmpty())
        m_state->setText(reason);
    else if (cancelled)
        m_state->setText(tr("cancelled: %1 finished runs are kept").arg(m_runs.size()));
    else
        m_state->setText(m_warnings.isEmpty() ? tr("%1 runs of %2 updates").arg(m_runs.size()).arg(m_updates->value())
                                              : m_warnings.front());
    m_state->setToolTip(m_warnings.join(QLatin1Char('\n')));
    Q_EMIT finished();
}

void ExperimentWindow::refreshResults()
{
    const std::vector<ExperimentSummary> lines = summarise(m_runs);
    Bytes largest = 0;
    for (const ExperimentSummary& line : lines)
        largest = std::max({largest, line.peakBytes, line.predictedPeakBytes});
    std::vector<std::vector<ValueCell>> rows;
    for (const ExperimentSummary& line : lines)
        rows.push_back({{QString::fromStdString(line.name), false, QString::fromStdString(line.rule), false},
                        {lossText(line.finalLoss, line.seeds)},
                        {line.heldBack ? lossText(line.heldBackLoss, line.seeds) : QStringLiteral("–")},
                        {percentText(line.heldBackAccuracy.mean)},
                        {!line.bitEqual   ? QStringLiteral("–")
                         : *line.bitEqual ? tr("equal")
                                          : tr("differ")},
                        {numbersText(line.staleness)},
                        {numbersText(line.copies)},
                        {QString::number(line.updatesPerSecond.mean, 'f', 1)},
                        {sizeAmong(line.peakBytes, largest), false,
                         tr("predicted: %1").arg(sizeAmong(line.predictedPeakBytes, largest))}});
    m_results->setRows(rows);
}

void ExperimentWindow::save()
{
    const QString path = QFileDialog::getSaveFileName(this, tr("Save the experiment"), QStringLiteral("experiment.svg"),
                                                      tr("Picture (*.svg);;Curves (*.csv);;Results (*.db)"));
    if (path.isEmpty())
        return;
    try {
        saveTo(path);
        m_state->setText(tr("saved: %1").arg(path));
    } catch (const Error& error) {
        QMessageBox::warning(this, windowTitle(), proseText(error.diagnostics().front()));
    }
}

void ExperimentWindow::saveTo(const QString& path) const
{
    if (path.endsWith(QLatin1String(".csv")))
        writeFileAtomically(path.toStdString(), curvesCsv(m_runs), true);
    else if (path.endsWith(QLatin1String(".svg")))
        writeFileAtomically(
            path.toStdString(),
            lossPicture(tr("%1 updates, %2").arg(m_updates->value()).arg(m_optimizer->currentText()).toStdString(),
                        lossCurves(m_runs), Theme::of(*this).isDark ? darkTheme : lightTheme),
            true);
    else if (path.endsWith(QLatin1String(".db"))) {
        ExperimentStore store(path.toStdString());
        for (const ExperimentRun& run : m_runs)
            store.add(recordOf(run));
    } else
        throw Error(path.toStdString(), "experiments are saved as .svg, .csv or .db",
                    "end the name in one of the three");
}

QString ExperimentWindow::state() const
{
    return m_state->text();
}

QString ExperimentWindow::lesson() const
{
    return m_lesson->text();
}

void ExperimentWindow::showEvent(QShowEvent* event)
{
    QDialog::showEvent(event);
    m_policies->setFocus();
}

void ExperimentWindow::changeEvent(QEvent* event)
{
    QDialog::changeEvent(event);
    if (m_made && event->type() == QEvent::PaletteChange) { // items store colours
        refreshPolicies();
        refreshResults();
    }
}

} // namespace pipewright

#include "moc_experimentwindow.cpp"
