// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/experiment/experimentwindow.h"

#include "core/base/textfile.h"
#include "core/files/designfile.h"
#include "core/predict/stability.h"
#include "executor/experiment/experimentreport.h"
#include "executor/run/run.h"
#include "gui/experiment/lossplot.h"
#include "gui/experiment/stabilityplot.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/valuetable.h"
#include "gui/widgets/words.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QEvent>
#include <QFileDialog>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
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

constexpr int rowsPerStage = 2; ///< of data, of an update

QString lossText(const Spread& loss, int seeds)
{
    if (!std::isfinite(loss.mean))
        return QObject::tr("diverged");
    return seeds > 1 ? QStringLiteral("%1 ± %2").arg(loss.mean, 0, 'f', 3).arg(loss.range / 2, 0, 'f', 3)
                     : QString::number(loss.mean, 'f', 3);
}

QString numbersText(const std::vector<int>& numbers)
{
    return numbers.empty() ? QStringLiteral("–") : QString::fromStdString(joined(numbers));
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
    tabs->setDocumentMode(true);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(24, 18, 24, 18);
    layout->setSpacing(20);
    layout->addWidget(settings);
    layout->addWidget(tabs, 1);

    connect(&m_process, &ExperimentProcess::progressed, this, &ExperimentWindow::takeProgress);
    connect(&m_process, &ExperimentProcess::runFinished, this, [this](ExperimentRun run) {
        // The curve is known from updates; the other results come with the end of the run.
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
    resize(1180, 700);
}

QWidget* ExperimentWindow::makeSettings()
{
    auto* column = new QWidget(this);
    column->setFixedWidth(250);
    m_policies = new QListWidget(column);
    m_policies->setAccessibleName(tr("Policies to train"));
    m_policies->setFrameShape(QFrame::NoFrame);
    m_policies->setSpacing(3);
    for (const ComparablePolicy& policy : comparablePolicies()) {
        auto* item =
            new QListWidgetItem(QString::fromUtf8(policy.title.data(), qsizetype(policy.title.size())), m_policies);
        const Family* family = findFamily(policy.family);
        item->setCheckState(family != nullptr && family->anyOptimizer ? Qt::Checked : Qt::Unchecked);
    }
    auto* own = new QListWidgetItem(m_policies);
    own->setCheckState(Qt::Unchecked);
    m_policies->setCurrentRow(6);

    m_model = new QComboBox(column);
    m_model->addItem(tr("small byte GPT"), QStringLiteral("byte-gpt-small"));
    m_model->addItem(tr("byte MLP, kinds of files"), QStringLiteral("byte-mlp"));
    m_model->setToolTip(tr("The GPT is trained on the program's own sources, the MLP tells its resources apart; the "
                           "last tenth is held back"));
    m_optimizer = new QComboBox(column);
    for (const OptimizerFacts& facts : optimizers)
        m_optimizer->addItem(QString::fromUtf8(facts.title.data(), qsizetype(facts.title.size())),
                             QString::fromUtf8(facts.name.data(), qsizetype(facts.name.size())));
    const auto spin = [column](int low, int high, int value) {
        auto* box = new QSpinBox(column);
        box->setRange(low, high);
        box->setValue(value);
        return box;
    };
    m_stageCount = spin(2, 4, 4);
    m_updates = spin(1, 20'000, 300);
    m_seeds = spin(1, 99, 1);
    m_rate = new QDoubleSpinBox(column);
    m_rate->setDecimals(5);
    m_rate->setRange(0.00001, 10);
    m_rate->setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
    m_rate->setValue(0.03);
    m_momentum = new QDoubleSpinBox(column);
    m_momentum->setDecimals(3);
    m_momentum->setRange(0, 0.999);
    m_momentum->setSingleStep(0.05);
    m_momentum->setValue(0.9);
    m_momentum->setToolTip(tr("Of SGD; of AdamW the first one"));
    m_button = new QPushButton(tr("Train"), column);
    m_button->setProperty("primary", true);
    m_button->setDefault(true);

    auto* form = new QFormLayout;
    form->setContentsMargins(0, 0, 0, 0);
    form->setSpacing(8);
    const auto row = [&](const QString& name, QWidget* field) {
        field->setAccessibleName(name);
        if (auto* number = qobject_cast<QAbstractSpinBox*>(field))
            number->setButtonSymbols(QAbstractSpinBox::NoButtons); // arrows and wheel step it
        form->addRow(name, field);
    };
    row(tr("Model"), m_model);
    row(tr("Stages"), m_stageCount);
    row(tr("Updates"), m_updates);
    row(tr("Seeds"), m_seeds);
    row(tr("Optimizer"), m_optimizer);
    row(tr("Learning rate"), m_rate);
    row(tr("Momentum"), m_momentum);
    auto* layout = new QVBoxLayout(column);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(10);
    layout->addWidget(makeHeading(tr("Policies"), column));
    layout->addWidget(m_policies, 1);
    layout->addLayout(form);
    layout->addWidget(m_button);

    connect(m_button, &QPushButton::clicked, this, [this] { isRunning() ? cancel() : start(); });
    connect(m_policies, &QListWidget::currentRowChanged, this, &ExperimentWindow::refreshLesson);
    connect(m_optimizer, &QComboBox::currentIndexChanged, this, [this](int index) {
        m_rate->setValue(optimizers[index].values == 1 ? 0.03 : 0.001); // suits the sequential run of the small GPT
        refreshPolicies();
    });
    connect(m_stageCount, &QSpinBox::valueChanged, this, &ExperimentWindow::refreshPolicies);
    connect(m_model, &QComboBox::currentIndexChanged, this, &ExperimentWindow::refreshPolicies);
    connect(m_rate, &QDoubleSpinBox::valueChanged, this, &ExperimentWindow::refreshLesson);
    connect(m_momentum, &QDoubleSpinBox::valueChanged, this, &ExperimentWindow::refreshLesson);
    return column;
}

QWidget* ExperimentWindow::makeTraining()
{
    auto* page = new QWidget(this);
    m_plot = new LossPlot(page);
    m_state = makeCaption(tr("Every design sees the same data in the same order, from the same weights."),
                          TextSize::Normal, page);
    m_state->setAccessibleName(tr("State of the experiment"));
    m_state->setWordWrap(true);
    m_progress = new QProgressBar(page);
    m_progress->setAccessibleName(tr("Progress"));
    m_progress->setTextVisible(false);
    m_progress->setFixedHeight(6);
    m_progress->setRange(0, 1000);
    m_progress->hide();
    m_save = new QPushButton(tr("Save…"), page);
    m_save->setAutoDefault(false);
    m_save->setEnabled(false);
    m_results = new ValueTable(tr("Results by design"),
                               {tr("design"), tr("final loss"), tr("held back"), tr("accuracy"), tr("sequential bits"),
                                tr("staleness"), tr("copies"), tr("updates/s"), tr("peak memory")},
                               page);
    m_results->setColumnTip(
        1,
        tr("Mean of the last tenth of the updates; over seeds ± half the distance from the smallest to the largest"));
    m_results->setColumnTip(2, tr("Loss on data that was never trained on"));
    m_results->setColumnTip(3, tr("Share of held-back targets that got the largest probability"));
    m_results->setColumnTip(4, tr("Whether the final weights are those of the sequential run, to the bit"));
    m_results->setColumnTip(5,
                            tr("Updates between the version that a forward read and the update it feeds, per stage"));
    m_results->setColumnTip(6, tr("Copies of the weights held at once, predicted ones included, per stage"));
    m_results->setColumnTip(7, tr("Measured on this machine, while the designs took turns"));
    m_results->horizontalHeader()->setSectionResizeMode(0, QHeaderView::ResizeToContents);

    auto* top = new QHBoxLayout;
    top->setSpacing(12);
    top->addWidget(m_state, 1);
    top->addWidget(m_progress, 1);
    top->addWidget(m_save);
    auto* layout = new QVBoxLayout(page);
    layout->setContentsMargins(0, 14, 0, 0);
    layout->setSpacing(12);
    layout->addLayout(top);
    layout->addWidget(m_plot, 3);
    layout->addWidget(m_results, 2);
    connect(m_save, &QPushButton::clicked, this, &ExperimentWindow::save);
    connect(m_results, &QTableWidget::currentCellChanged, this, [this](int row) { m_plot->setCurrent(row); });
    return page;
}

QWidget* ExperimentWindow::makeLesson()
{
    auto* page = new QWidget(this);
    m_lesson = makeCaption({}, TextSize::Normal, page);
    m_lesson->setWordWrap(true);
    m_lesson->setAccessibleName(tr("What the policy costs, in words"));
    m_stages = new ValueTable(
        tr("Stages of the policy"),
        {tr("stage"), tr("staleness"), tr("predicted"), tr("versions"), tr("copies"), tr("memory"), tr("stable up to")},
        page);
    m_stages->setColumnTip(2, tr("By how many updates the forward's weights are predicted"));
    m_stages->setColumnTip(5, tr("Bytes of those copies"));
    m_stages->setColumnTip(
        6,
        tr("Largest learning rate at which one weight with this staleness settles, loss w²/2, SGD with this momentum"));
    m_stability = new StabilityPlot(page);
    auto* layout = new QVBoxLayout(page);
    layout->setContentsMargins(0, 14, 0, 0);
    layout->setSpacing(12);
    layout->addWidget(m_lesson);
    layout->addWidget(m_stages, 2);
    layout->addWidget(m_stability, 3);
    connect(m_stages, &QTableWidget::currentCellChanged, this, [this](int row) {
        if (row >= 0 && !m_filling)
            refreshLesson();
    });
    return page;
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
    own->setText(tr("this design: %1").arg(QString::fromStdString(m_document.design().name)));
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
            why = QString::fromStdString(toString(error.diagnostics().front()));
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
        why = QString::fromStdString(toString(error.diagnostics().front()));
    }
    const QString name = row >= 0 ? m_policies->item(row)->text() : QString();
    m_filling = true;
    std::vector<std::vector<ValueCell>> rows;
    for (const StageLesson& lesson : lessons)
        rows.push_back({{QString::number(lesson.weights.stage)},
                        {QString::number(lesson.weights.staleness)},
                        {QString::number(lesson.weights.forwardSteps)},
                        {QString::number(lesson.weights.versions)},
                        {QString::number(lesson.weights.copies)},
                        {sizeText(lesson.weights.bytes)},
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
        m_state->setText(QString::fromStdString(toString(error.diagnostics().front())));
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
    std::vector<std::vector<ValueCell>> rows;
    for (const ExperimentSummary& line : summarise(m_runs))
        rows.push_back({{QString::fromStdString(line.name), false, QString::fromStdString(line.rule), false},
                        {lossText(line.finalLoss, line.seeds)},
                        {lossText(line.heldBackLoss, line.seeds)},
                        {percentText(line.heldBackAccuracy.mean)},
                        {!line.bitEqual   ? QStringLiteral("–")
                         : *line.bitEqual ? tr("equal")
                                          : tr("differ")},
                        {numbersText(line.staleness)},
                        {numbersText(line.copies)},
                        {QString::number(line.updatesPerSecond.mean, 'f', 1)},
                        {sizeText(line.peakBytes), false, tr("predicted: %1").arg(sizeText(line.predictedPeakBytes))}});
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
        QMessageBox::warning(this, windowTitle(), QString::fromStdString(toString(error.diagnostics().front())));
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
    if (m_made && event->type() == QEvent::PaletteChange) { // items hold colours of their own
        refreshPolicies();
        refreshResults();
    }
}

} // namespace pipewright
