// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/plan/planfields.h"

#include "core/plan/planclusters.h"
#include "core/presets/modelfile.h"
#include "core/presets/presets.h"
#include "gui/compare/noisefields.h"
#include "gui/plan/filechoice.h"
#include "gui/widgets/choices.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/notedfield.h"
#include "gui/widgets/section.h"
#include "gui/widgets/words.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFileInfo>
#include <QFormLayout>
#include <QListWidget>
#include <QPushButton>
#include <QSignalBlocker>

#include <algorithm>
#include <iterator>
#include <thread>

namespace pipewright {

namespace {

constexpr int fieldWidth = 200, nameWidth = 92;
constexpr int mostDevices = 65'536, mostSequences = 1 << 20, mostTokens = 1 << 22, mostListed = 100;
const QString ofDesign = QStringLiteral("\n"); ///< the choice that is no name and no file
constexpr std::string_view megatronFamilies[] = {"1f1b", "interleaved-1f1b"};

void addFile(QComboBox* combo, const QString& path)
{
    int at = combo->findData(path);
    if (at < 0) {
        at = combo->itemData(0).toString() == ofDesign ? 1 : 0;
        combo->insertItem(at, QFileInfo(path).fileName(), path);
        combo->setItemData(at, path, Qt::ToolTipRole);
    }
    combo->setCurrentIndex(at);
}

/// The list below a combo box is as wide as its longest entry.
void widenList(QComboBox* combo)
{
    combo->view()->setMinimumWidth(combo->view()->sizeHintForColumn(0) + 24);
}

std::int64_t devicesOf(const Design& design)
{
    return design.schedule.devices() * (design.workload ? design.workload->shape.parallel.devicesPerStage() : 1);
}

} // namespace

PlanFields::PlanFields(QWidget* parent)
    : QWidget(parent), m_presets(std::make_unique<PresetLibrary>()), m_model(makeChoice(tr("Model"), fieldWidth, this)),
      m_cluster(makeChoice(tr("Cluster"), fieldWidth, this)),
      m_devices(makeCountField(tr("Devices"), 1, mostDevices, 64, fieldWidth, this)),
      m_batch(makeCountField(tr("Batch"), 1, mostSequences, 512, fieldWidth, this)),
      m_sequence(makeCountField(tr("Sequence"), 1, mostTokens, 2048, fieldWidth, this)),
      m_top(makeCountField(tr("Plans in the list"), 1, mostListed, 10, fieldWidth, this)),
      m_memoryLimit(new QLineEdit(this)), m_timeLimit(new DecimalField(this)), m_slowNode(new DecimalField(this)),
      m_framework(makeChoice(tr("Framework"), fieldWidth, this)),
      m_familySet(makeChoice(tr("Families"), fieldWidth, this)), m_families(new QListWidget(this)),
      m_noisy(new QCheckBox(tr("the step when times vary, too"), this)), m_noise(new NoiseFields(this))
{
    auto* layout = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 14);
    layout->addWidget(buildFirst());
    addSection(tr("Limits"), buildLimits());
    addSection(tr("Families"), buildFamilies());
    addSection(tr("Pins"), buildPins());
    addSection(tr("Under noise"), buildNoise());
    layout->addStretch(1);
    connect(m_model, &QComboBox::currentIndexChanged, this, &PlanFields::takeModel);
    connect(m_cluster, &QComboBox::currentIndexChanged, this, &PlanFields::takeCluster);
    connect(m_devices, &QSpinBox::valueChanged, this, &PlanFields::takeCluster);
    for (QComboBox* combo : {m_model, m_cluster}) // the field cuts long names off
        connect(combo, &QComboBox::currentTextChanged, combo, &QWidget::setToolTip);
    m_model->setCurrentIndex(std::max(0, m_model->findData(QStringLiteral("llama-3-8b"))));
    m_cluster->setCurrentIndex(std::max(0, m_cluster->findData(QStringLiteral("h100-nodes"))));
}

PlanFields::~PlanFields() = default;

void PlanFields::addRow(QFormLayout& form, const QString& text, QWidget* field, const QString& tip,
                        const std::string& option)
{
    QLabel* label = makeCaptionOf(field, text);
    label->setFixedWidth(nameWidth);
    field->setToolTip(tip);
    field->setFixedWidth(fieldWidth);
    form.addRow(label, new NotedField(field));
    m_fields.emplace_back(option, field);
}

void PlanFields::addSection(const QString& title, QWidget* body)
{
    m_sections.push_back(new Section(title, body, false, this));
    layout()->addWidget(m_sections.back());
}

QWidget* PlanFields::buildFirst()
{
    auto* body = new QWidget(this);
    QFormLayout* form = makeForm(body, 10, 8);
    addPresets(m_model, *m_presets, PresetKind::Model);
    addPresets(m_cluster, *m_presets, PresetKind::Cluster);
    widenList(m_model);
    widenList(m_cluster);
    const auto opens = [&](const QString& text, const QString& title, const QString& kinds, auto choose) {
        auto* button = new QPushButton(text, body);
        button->setAutoDefault(false);
        button->setFixedWidth(fieldWidth);
        connect(button, &QPushButton::clicked, this, [this, title, kinds, choose] {
            chooseFile(this, title, kinds, {}, [this, choose](const QString& path) { (this->*choose)(path); });
        });
        form->addRow(nullptr, button);
    };
    addRow(*form, tr("Model"), m_model, tr("The design's own, a preset, or your file"), "--model");
    opens(tr("Open config.json…"), tr("A model: config.json of Hugging Face, a model file, a table of layers"),
          tr("Models (*.json *.csv);;All files (*)"), &PlanFields::chooseModelFile);
    addRow(*form, tr("Cluster"), m_cluster, tr("The design's own, a preset, or the file of a measured machine"),
           "--cluster");
    opens(tr("Open a cluster file…"), tr("A cluster, as devices --measure writes it"),
          tr("Clusters (*.json);;All files (*)"), &PlanFields::chooseClusterFile);
    addRow(*form, tr("Devices"), m_devices, tr("All GPUs, of all copies of the pipeline"), "--devices");
    addRow(*form, tr("Batch"), m_batch, tr("Sequences of a step, of all copies of the pipeline together"), "--batch");
    addRow(*form, tr("Sequence"), m_sequence, tr("Tokens of a sequence"), "--sequence");
    m_devices->setSuffix(tr(" GPUs"));
    m_batch->setSuffix(tr(" sequences"));
    m_sequence->setSuffix(tr(" tokens"));
    return body;
}

QWidget* PlanFields::buildLimits()
{
    auto* body = new QWidget(this);
    QFormLayout* form = makeForm(body, 10, 8);
    m_memoryLimit->setPlaceholderText(tr("the devices' memory"));
    m_memoryLimit->setAccessibleName(tr("Memory limit"));
    m_memoryLimit->setFont(Theme::numbers());
    m_timeLimit->setRange(0, 86'400);
    m_timeLimit->setDecimals(0);
    m_timeLimit->setSpecialValueText(tr("none"));
    m_timeLimit->setSuffix(tr("\u00a0s"));
    m_timeLimit->setButtonSymbols(QAbstractSpinBox::NoButtons);
    m_timeLimit->setFont(Theme::numbers());
    m_timeLimit->setAccessibleName(tr("Time limit"));
    m_slowNode->setRange(0, 90);
    m_slowNode->setDecimals(0);
    m_slowNode->setSpecialValueText(tr("none"));
    m_slowNode->setSuffix(tr("\u00a0% slower"));
    m_slowNode->setButtonSymbols(QAbstractSpinBox::NoButtons);
    m_slowNode->setFont(Theme::numbers());
    m_slowNode->setAccessibleName(tr("Slow node"));
    m_framework->addItem(tr("as the model states"));
    for (const FrameworkFacts& facts : frameworks)
        m_framework->addItem(QString::fromUtf8(facts.name), QString::fromUtf8(facts.name));
    addRow(*form, tr("Memory"), m_memoryLimit, tr("Of a device, such as 60GiB; empty: all that it has"),
           "--memory-limit");
    addRow(*form, tr("Framework"), m_framework, tr("What a training framework keeps in memory besides"), "--framework");
    addRow(*form, tr("Slow node"), m_slowNode,
           tr("What if one node's devices were slower by so much? Press Plan again for the difference"), "slow_node");
    addRow(*form, tr("Time"), m_timeLimit, tr("Of the search, which then ends with the best so far"), "--time-limit");
    addRow(*form, tr("Listed"), m_top, tr("Plans in the list; those on the frontier of step and memory come besides"),
           "--top");
    m_top->setSuffix(tr(" plans"));
    return body;
}

QWidget* PlanFields::buildFamilies()
{
    auto* body = new QWidget(this);
    QFormLayout* form = makeForm(body, 10, 8);
    m_familySet->addItem(tr("all synchronous ones"));
    m_familySet->setItemData(Synchronous, tr("All that update once a step and do not search for their order"),
                             Qt::ToolTipRole);
    m_familySet->addItem(tr("what Megatron-LM runs"));
    m_familySet->setItemData(Megatron, tr("1F1B and interleaved 1F1B"), Qt::ToolTipRole);
    m_familySet->addItem(tr("those ticked below"));
    addRow(*form, tr("Families"), m_familySet, tr("The schedules that plans may have; asynchronous ones when ticked"),
           "--families");
    for (const Family& family : pipewright::families()) {
        auto* item = new QListWidgetItem(QString::fromUtf8(family.title), m_families);
        item->setData(Qt::UserRole, QString::fromUtf8(family.name));
        item->setToolTip(QString::fromUtf8(family.description));
        item->setFlags(Qt::ItemIsEnabled | Qt::ItemIsUserCheckable | Qt::ItemIsSelectable);
        item->setCheckState(Qt::Unchecked);
    }
    m_families->setAccessibleName(tr("Families that plans may have"));
    m_families->setFixedHeight(170);
    m_families->hide();
    form->addRow(m_families);
    connect(m_familySet, &QComboBox::currentIndexChanged, m_families,
            [this](int set) { m_families->setVisible(set == Named); });
    return body;
}

bool PlanFields::isNumber(std::string_view dimension)
{
    return dimension != "recompute" && dimension != "reshard" && dimension != "zero" && dimension != "folded_experts";
}

QStringList PlanFields::valuesOf(std::string_view dimension)
{
    if (dimension == "recompute")
        return {QStringLiteral("none"), QStringLiteral("selective"), QStringLiteral("full")};
    if (dimension == "folded_experts")
        return {QStringLiteral("yes"), QStringLiteral("no")};
    if (dimension == "reshard")
        return {QStringLiteral("always"), QStringLiteral("never")};
    if (dimension == "zero")
        return {QStringLiteral("0"), QStringLiteral("1"), QStringLiteral("2"), QStringLiteral("3")};
    QStringList powers;
    for (int power = 1; power <= 64; power *= 2)
        powers << QString::number(power);
    return powers;
}

QWidget* PlanFields::buildPins()
{
    auto* body = new QWidget(this);
    QFormLayout* form = makeForm(body, 10, 8);
    const QString tips[] = {tr("Devices of a stage that share every matrix"),
                            tr("Devices of a stage that share every sequence"),
                            tr("Copies of the pipeline that share out the experts"),
                            tr("Whether tensor- and context-parallel devices share out the experts too, each with "
                               "whole ones"),
                            tr("Devices behind each other, a stage or several on each"),
                            tr("Copies of the pipeline, which sum their gradients after a step"),
                            tr("Stages of a device"),
                            tr("Sequences of a microbatch"),
                            tr("What copies share out: 1 optimizer state, 2 gradients too, 3 parameters too"),
                            tr("Whether gathered parameters are freed between a device's visits"),
                            tr("Which activations all stages make again for the backward")};
    static_assert(std::size(tips) == std::size(dimensions));
    for (std::size_t i = 0; i < std::size(dimensions); ++i) {
        const QString name = QString::fromUtf8(dimensions[i]).replace(QLatin1Char('_'), QLatin1Char(' '));
        QComboBox* combo = makeChoice(tr("Pinned: %1").arg(name), fieldWidth, this);
        combo->addItem(tr("any"));
        combo->addItems(valuesOf(dimensions[i]));
        combo->setEditable(isNumber(dimensions[i]));
        combo->setInsertPolicy(QComboBox::NoInsert);
        m_pins.push_back(combo);
        addRow(*form, name, combo, tips[i], "--pin " + std::string(dimensions[i]));
    }
    return body;
}

QWidget* PlanFields::buildNoise()
{
    auto* body = new QWidget(this);
    auto* column = makeLayout<QVBoxLayout>(body, {0, 0, 0, 0}, 8);
    m_noisy->setToolTip(
        tr("Median and 95th percentile of every listed plan's step. %1").arg(NoiseFields::explanation()));
    for (QWidget* field : {static_cast<QWidget*>(&m_noise->block()), static_cast<QWidget*>(&m_noise->device())})
        field->setFixedWidth(64);
    m_noise->setEnabled(false);
    connect(m_noisy, &QCheckBox::toggled, m_noise, &QWidget::setEnabled);
    column->addWidget(m_noisy);
    column->addWidget(m_noise);
    return body;
}

void PlanFields::setDesign(std::shared_ptr<const Design> design)
{
    const bool isFirst = !m_design;
    const bool isOther = isFirst || !(m_design->workload == design->workload);
    m_design = std::move(design);
    const auto offer = [&](QComboBox* combo, bool has, const QString& text, const QString& tip) {
        const bool offered = combo->itemData(0).toString() == ofDesign;
        if (has && !offered) {
            const QSignalBlocker quiet(combo);
            combo->insertItem(0, text, ofDesign);
        } else if (!has && offered) {
            combo->removeItem(0);
        }
        if (has)
            combo->setItemData(0, tip, Qt::ToolTipRole);
        if (has && isFirst)
            combo->setCurrentIndex(0);
    };
    const std::optional<Workload>& workload = m_design->workload;
    offer(m_model, workload.has_value(), tr("this design's model"),
          workload ? QString::fromStdString(workload->source) : QString());
    bool alike = true;
    try {
        (void)planClusters(m_design->cluster, devicesOf(*m_design));
    } catch (const Error&) {
        alike = false;
    }
    offer(m_cluster, alike, tr("this design's cluster"), QString::fromStdString(m_design->cluster.name));
    if (isFirst && alike)
        m_devices->setValue(static_cast<int>(std::min<std::int64_t>(devicesOf(*m_design), mostDevices)));
    if (isFirst && workload) {
        const std::int64_t sequences =
            m_design->schedule.microbatches * workload->shape.microbatchSize * workload->shape.parallel.data;
        m_batch->setValue(static_cast<int>(std::min<std::int64_t>(sequences, mostSequences)));
    }
    if (isOther && isOfDesign(m_model))
        takeModel();
    takeCluster();
}

bool PlanFields::isOfDesign(const QComboBox* combo) const
{
    return m_design && combo->currentData().toString() == ofDesign;
}

void PlanFields::chooseModelFile(const QString& path)
{
    addFile(m_model, path);
    takeModel(); // also a file that has changed since
}

void PlanFields::chooseClusterFile(const QString& path)
{
    addFile(m_cluster, path);
    takeCluster();
}

void PlanFields::takeModel()
{
    NotedField* note = NotedField::around(m_model);
    try {
        ModelFile model;
        if (isOfDesign(m_model))
            model = {m_design->workload->shape, m_design->workload->source, {}};
        else
            model = loadModel(chosenIn(m_model));
        note->setNote(proseText(model.notes), Tone::Dim);
        m_sequence->setEnabled(model.shape.architecture != Architecture::Table); // its layers hold for one length
        m_sequence->setValue(static_cast<int>(model.shape.sequence));
        m_framework->setItemText(0, tr("the model's: %1").arg(QString::fromUtf8(nameOf(model.shape.framework))));
    } catch (const Error& error) {
        note->setNote(proseText(error.diagnostics()), Tone::Bad);
    }
}

void PlanFields::takeCluster()
{
    NotedField* note = NotedField::around(m_cluster);
    try {
        const Nodes nodes =
            isOfDesign(m_cluster) ? m_design->cluster.nodes : m_presets->cluster(chosenIn(m_cluster)).nodes;
        const int devices = m_devices->value();
        note->setNote({}, Tone::Plain);
        QString layout;
        if (nodes.devices > 0 && devices % nodes.devices != 0)
            layout = tr("nodes of %1, the last one not full").arg(nodes.devices);
        else if (nodes.devices == devices)
            layout = tr("a node of %1").arg(devices);
        else if (nodes.devices > 0)
            layout = tr("%1 nodes of %2").arg(devices / nodes.devices).arg(nodes.devices);
        NotedField::around(m_devices)->setNote(layout, Tone::Dim);
    } catch (const Error& error) {
        note->setNote(proseText(error.diagnostics()), Tone::Bad);
        NotedField::around(m_devices)->setNote({}, Tone::Plain);
    }
}

std::vector<std::string> PlanFields::chosenFamilies() const
{
    std::vector<std::string> names;
    switch (static_cast<FamilySet>(m_familySet->currentIndex())) {
    case Synchronous: break; // none named: the search takes them
    case Megatron: names.assign(std::begin(megatronFamilies), std::end(megatronFamilies)); break;
    case Named:
        for (int row = 0; row < m_families->count(); ++row)
            if (m_families->item(row)->checkState() == Qt::Checked)
                names.push_back(m_families->item(row)->data(Qt::UserRole).toString().toStdString());
        if (names.empty())
            throw Error("--families", "none is ticked", "tick one, or take all synchronous ones");
        break;
    }
    return names;
}

std::vector<std::string> PlanFields::pins() const
{
    std::vector<std::string> pins;
    for (std::size_t i = 0; i < m_pins.size(); ++i)
        if (const QString value = m_pins[i]->currentText().trimmed();
            !value.isEmpty() && value != m_pins[i]->itemText(0))
            pins.push_back(std::string(dimensions[i]) + "=" + value.toStdString());
    return pins;
}

QComboBox* PlanFields::pin(std::string_view dimension) const
{
    const auto* const found = std::find(std::begin(dimensions), std::end(dimensions), dimension);
    return found == std::end(dimensions) ? nullptr : m_pins[static_cast<std::size_t>(found - std::begin(dimensions))];
}

PlanRequest PlanFields::request() const
{
    PlanRequest request;
    if (isOfDesign(m_model)) {
        request.shape = m_design->workload->shape;
        request.source = m_design->workload->source;
    } else {
        ModelFile model = loadModel(chosenIn(m_model));
        request.shape = std::move(model.shape);
        request.source = std::move(model.source);
    }
    if (m_sequence->isEnabled())
        request.shape.sequence = m_sequence->value();
    if (const auto framework = frameworkNamed(chosenIn(m_framework)))
        request.shape.framework = *framework;
    request.cluster = isOfDesign(m_cluster) ? planClusters(m_design->cluster, devicesOf(*m_design))
                                            : planClusters(chosenIn(m_cluster));
    if (m_slowNode->value() > 0) {
        request.cluster = withSlowNode(request.cluster, m_slowNode->value() / 100);
        (void)request.cluster(1, 1); // a cluster without nodes is no fault of a plan
    }
    request.devices = m_devices->value();
    request.batch = m_batch->value();
    request.top = m_top->value();
    request.families = chosenFamilies();
    for (const std::string& each : pins())
        pipewright::pin(request, each, "--pin " + each.substr(0, each.find('=')));
    if (const QString limit = m_memoryLimit->text().trimmed(); !limit.isEmpty())
        request.memoryLimit = parseSize(typedQuantity(limit), "--memory-limit");
    request.timeLimit = std::chrono::milliseconds(static_cast<std::int64_t>(m_timeLimit->value() * 1000));
    request.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    if (m_noisy->isChecked())
        request.noise = shownNoise(Costs{}, m_noise->value());
    return request;
}

Diagnostics PlanFields::showFaults(const Diagnostics& faults)
{
    Diagnostics rest = faults;
    for (const auto& [option, field] : m_fields) {
        if (field == m_model || field == m_devices)
            continue; // what they say of themselves stays
        NotedField::around(field)->setNote(rest, option.c_str());
        const auto isMine = [&option = option](const Diagnostic& each) { return isAbout(each, option.c_str()); };
        if (std::none_of(rest.begin(), rest.end(), isMine))
            continue;
        std::erase_if(rest, isMine);
        for (Section* section : m_sections) // a fault that is folded away would not be seen
            if (section->isAncestorOf(field))
                section->setOpen(true);
    }
    return rest;
}

} // namespace pipewright

#include "moc_planfields.cpp"
