// SPDX-License-Identifier: GPL-3.0-or-later
// The widgets of the experiment window and their layout.
#include "gui/experiment/experimentwindow.h"

#include "core/model/transformer.h"
#include "core/presets/presets.h"
#include "gui/experiment/lossplot.h"
#include "gui/experiment/stabilityplot.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/valuetable.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QHeaderView>
#include <QListWidget>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>

#include <algorithm>

namespace pipewright {

namespace {

/// Adds the presets that are small enough to be trained many times, the smallest first. Models with a tied head are
/// left out: two stages share that weight, and the policies have rules only for weights of one stage.
void addModels(QComboBox& combo)
{
    constexpr std::int64_t most = 50'000'000; // parameters
    std::vector<std::pair<std::int64_t, Preset>> small;
    const PresetLibrary library;
    for (const Preset& preset : library.list(PresetKind::Model)) {
        const Workload workload = library.workload(preset.name);
        const bool tied = std::any_of(workload.layers.begin(), workload.layers.end(),
                                      [](const Layer& layer) { return layer.sharedParameters > 0; });
        if (const std::int64_t parameters = parameterCount(workload); !tied && parameters <= most)
            small.emplace_back(parameters, preset);
    }
    std::stable_sort(small.begin(), small.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [parameters, preset] : small) {
        const QString title = QString::fromStdString(preset.title); // the model's purpose is in parentheses
        combo.addItem(title.section(QStringLiteral(" ("), 0, 0), QString::fromStdString(preset.name));
        combo.setItemData(combo.count() - 1, title, Qt::ToolTipRole);
    }
    combo.setCurrentIndex(std::max(0, combo.findData(QStringLiteral("byte-gpt-small"))));
}

} // namespace

QWidget* ExperimentWindow::makeSettings()
{
    auto* column = new QWidget(this);
    column->setFixedWidth(250);
    m_policies = new QListWidget(column);
    m_policies->setAccessibleName(tr("Policies to train"));
    m_policies->setFrameShape(QFrame::NoFrame);
    m_policies->setSpacing(3);
    m_policies->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff); // the own design's name is cut with an ellipsis
    for (const ComparablePolicy& policy : comparablePolicies()) {
        auto* item = new QListWidgetItem(QString::fromUtf8(policy.title), m_policies);
        const Family* family = findFamily(policy.family);
        item->setCheckState(family != nullptr && family->anyOptimizer ? Qt::Checked : Qt::Unchecked);
    }
    auto* own = new QListWidgetItem(m_policies);
    own->setCheckState(Qt::Unchecked);
    m_policies->setCurrentRow(6);

    m_model = new QComboBox(column);
    addModels(*m_model);
    m_model->setToolTip(tr("The models that this machine trains in minutes; for another one open its design and tick "
                           "\"this design\". They read the program's own sources byte by byte; the MLP tells its "
                           "resources apart. The last tenth is for validation"));
    m_optimizer = new QComboBox(column);
    for (const OptimizerFacts& facts : optimizers)
        m_optimizer->addItem(QString::fromUtf8(facts.title), QString::fromUtf8(facts.name));
    const auto spin = [column](int low, int high, int value) {
        auto* box = new CountField(column);
        box->setRange(low, high);
        box->setValue(value);
        return box;
    };
    m_stageCount = spin(2, 4, 4);
    m_updates = spin(1, 20'000, 300);
    m_seeds = spin(1, 99, 1);
    m_rate = new DecimalField(column);
    m_rate->setDecimals(5);
    m_rate->setRange(0.00001, 10);
    m_rate->setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
    m_rate->setValue(0.03);
    m_momentum = new DecimalField(column);
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
            number->setButtonSymbols(QAbstractSpinBox::NoButtons); // the arrow keys and the wheel still step
        form->addRow(name, field);
    };
    row(tr("Model"), m_model);
    row(tr("Stages"), m_stageCount);
    row(tr("Updates"), m_updates);
    row(tr("Seeds"), m_seeds);
    row(tr("Optimizer"), m_optimizer);
    row(tr("Learning rate"), m_rate);
    row(tr("Momentum"), m_momentum);
    auto* layout = makeLayout<QVBoxLayout>(column, {0, 0, 0, 0}, 10);
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
                               {tr("design"), tr("final loss"), tr("validation loss"), tr("accuracy"), tr("bit-equal"),
                                tr("staleness"), tr("copies"), tr("updates/s"), tr("peak")},
                               page);
    m_results->setColumnTip(
        1,
        tr("Mean of the last tenth of the updates; over seeds ± half the distance from the smallest to the largest"));
    m_results->setColumnTip(2, tr("Loss on data that was never trained on"));
    m_results->setColumnTip(
        3, tr("Of validation: share of targets that got the largest probability, on data that was never trained on"));
    m_results->setColumnTip(4, tr("Whether the final weights are those of the sequential run, to the bit"));
    m_results->setColumnTip(5,
                            tr("Updates between the version that a forward read and the update it feeds, per stage"));
    m_results->setColumnTip(6, tr("Copies of the weights held at once, predicted ones included, per stage"));
    m_results->setColumnTip(7, tr("Measured on this machine, while the designs took turns"));

    auto* top = new QHBoxLayout;
    top->setSpacing(12);
    top->addWidget(m_state, 1);
    top->addWidget(m_progress, 1);
    top->addWidget(m_save);
    auto* layout = makeLayout<QVBoxLayout>(page, {0, 14, 0, 0}, 12);
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
    auto* layout = makeLayout<QVBoxLayout>(page, {0, 14, 0, 0}, 12);
    layout->addWidget(m_lesson);
    layout->addWidget(m_stages, 2);
    layout->addWidget(m_stability, 3);
    connect(m_stages, &QTableWidget::currentCellChanged, this, [this](int row) {
        if (row >= 0 && !m_filling)
            refreshLesson();
    });
    return page;
}

QWidget* ExperimentWindow::makeCosts()
{
    auto* page = new QWidget(this);
    auto* words =
        makeCaption(tr("Predicted, per update of every stage; traffic is between devices."), TextSize::Normal, page);
    words->setWordWrap(true);
    m_costs = new ValueTable(tr("Costs of a step by policy"),
                             {tr("policy"), tr("devices"), tr("activations"), tr("of all devices"), tr("parameters"),
                              tr("gradients"), tr("weights"), tr("boundaries"), tr("in a row")},
                             page);
    m_costs->setColumnTip(2, tr("Kept for backwards at most, on the device that keeps most"));
    m_costs->setColumnTip(3, tr("The same of all devices together, at one moment"));
    m_costs->setColumnTip(4, tr("Weights with their older and predicted copies, on the device that has most"));
    m_costs->setColumnTip(5, tr("Moved between devices: sums of gradients"));
    m_costs->setColumnTip(6, tr("Moved between devices: weights"));
    m_costs->setColumnTip(7, tr("Moved between devices: activations between stages, and their gradients"));
    m_costs->setColumnTip(8, tr("The most transfers that follow one another, no block between them"));
    auto* layout = makeLayout<QVBoxLayout>(page, {0, 14, 0, 0}, 12);
    layout->addWidget(words);
    layout->addWidget(m_costs, 1);
    return page;
}

} // namespace pipewright
