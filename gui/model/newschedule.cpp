// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/model/newschedule.h"

#include "gui/model/recomputechoices.h"

#include "core/design/redesign.h"
#include "core/model/transformer.h"
#include "core/predict/bubblerates.h"
#include "core/predict/predict.h"
#include "core/predict/throughput.h"
#include "core/presets/modelfile.h"
#include "core/presets/presets.h"
#include "gui/document/document.h"
#include "gui/model/parallelismfields.h"
#include "gui/model/zerofields.h"
#include "gui/widgets/choices.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/notedfield.h"
#include "gui/widgets/words.h"

#include <QComboBox>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QLabel>
#include <QLocale>
#include <QPushButton>
#include <QScreen>
#include <QScrollArea>
#include <QSpinBox>
#include <QStyle>

#include <utility>

namespace pipewright {

namespace {

constexpr int fieldWidth = 240;
const QString ownFile = QStringLiteral("file"); ///< the entry that asks for one; no preset has this name

QSpinBox* makeSpin(int least, int most, int value, const QString& name, QWidget* parent)
{
    return makeCountField(name, least, most, value, fieldWidth, parent);
}

void addRow(QFormLayout* form, const QString& text, QWidget* field)
{
    form->addRow(makeCaptionOf(field, text), new NotedField(field));
}

} // namespace

NewScheduleDialog::NewScheduleDialog(QWidget* parent, std::shared_ptr<MemberPredictor> members)
    : QDialog(parent), m_members(std::move(members)), m_presets(std::make_unique<PresetLibrary>()),
      m_buttons(new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, this))
{
    setWindowTitle(tr("New schedule"));
    makePanel(this);
    m_buttons->button(QDialogButtonBox::Ok)->setText(tr("Create"));
    // The box styled its button before this property was set.
    m_buttons->button(QDialogButtonBox::Ok)->setProperty("primary", true);
    m_buttons->button(QDialogButtonBox::Ok)->style()->polish(m_buttons->button(QDialogButtonBox::Ok));

    auto* columns = new QHBoxLayout;
    columns->setSpacing(28);
    auto* scroll = new QScrollArea(this); // the form is higher than a small screen
    QWidget* form = buildForm();
    scroll->setWidget(form);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setFocusPolicy(Qt::NoFocus);
    scroll->setMinimumWidth(form->sizeHint().width() + 14);
    makePanel(scroll->viewport());
    columns->addWidget(scroll);
    columns->addWidget(makeHairline(Qt::Vertical, this));
    columns->addWidget(buildPreview(), 1);
    auto* layout = makeLayout<QVBoxLayout>(this, {24, 20, 24, 20}, 18);
    layout->addLayout(columns, 1);
    layout->addWidget(m_buttons);

    connect(m_buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
    connect(m_buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_model, &QComboBox::currentIndexChanged, this, &NewScheduleDialog::takeModel);
    connect(m_model, &QComboBox::activated, this, &NewScheduleDialog::openOwnModel);
    connect(m_cluster, &QComboBox::currentIndexChanged, this, &NewScheduleDialog::request);
    connect(m_family, &QComboBox::currentIndexChanged, this, &NewScheduleDialog::takeFamily);
    for (QComboBox* combo : {m_layout, m_recompute, m_zero})
        connect(combo, &QComboBox::currentIndexChanged, this, &NewScheduleDialog::request);
    connect(m_groups, &ParallelismFields::edited, this, &NewScheduleDialog::request);
    for (QSpinBox* spin :
         {m_sequence, m_microbatchSize, m_devices, m_microbatches, m_replicas, m_chunks, m_group, m_pieces, m_workers})
        connect(spin, &QSpinBox::valueChanged, this, &NewScheduleDialog::request);
    takeModel();
    takeFamily();
    // Create is disabled until there is a prediction: Return would press Cancel instead.
    m_buttons->button(QDialogButtonBox::Cancel)->setAutoDefault(false);
    m_model->setFocus();
    const int frame = 96; // pixels of the dialog above and below the form, with its title
    resize(820, std::min(form->sizeHint().height() + frame, screen()->availableSize().height() - 40));
}

QWidget* NewScheduleDialog::buildForm()
{
    auto* widget = new QWidget(this);
    QFormLayout* form = m_form = makeForm(widget);
    m_model = makeChoice(tr("Model"), fieldWidth, widget);
    addPresets(m_model, *m_presets, PresetKind::Model);
    m_model->insertSeparator(m_model->count());
    m_model->addItem(tr("Open config.json…"), ownFile);
    choose(m_model, QStringLiteral("llama-3-8b"));
    m_sequence = makeSpin(1, 1 << 22, 2048, tr("Sequence length"), widget);
    m_sequence->setSuffix(tr(" tokens"));
    m_microbatchSize = makeSpin(1, 1 << 16, 1, tr("Microbatch size"), widget);
    m_microbatchSize->setSuffix(tr(" seq"));
    m_cluster = makeChoice(tr("Cluster"), fieldWidth, widget);
    addPresets(m_cluster, *m_presets, PresetKind::Cluster);
    choose(m_cluster, QStringLiteral("h200-node"));
    m_devices = makeSpin(1, maxDevices, 4, tr("Devices"), widget);
    m_family = makeChoice(tr("Family"), fieldWidth, widget);
    for (const Family& family : families())
        m_family->addItem(QString::fromUtf8(family.title), QString::fromUtf8(family.name));
    m_family->setCurrentIndex(std::max(0, m_family->findData(QStringLiteral("zb-h1"))));
    m_description = makeCaption({}, TextSize::Small, widget);
    m_description->setWordWrap(true);
    m_description->setFixedWidth(fieldWidth);
    m_description->setMinimumHeight(46);
    m_description->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    m_microbatches = makeSpin(1, maxMicrobatches, 8, tr("Microbatches"), widget);
    m_replicas = makeSpin(1, maxDevices, 1, tr("Replicas"), widget);
    m_replicas->setToolTip(tr("Copies of the pipeline, which share out the devices and the microbatches and sum their "
                              "gradients"));
    m_zero = makeChoice(tr("States that copies share out"), fieldWidth, widget);
    addZeroLevels(*m_zero);
    m_chunks = makeSpin(0, 64, 0, tr("Chunks per device"), widget);
    m_chunks->setSpecialValueText(tr("the family's own"));
    m_group = makeSpin(0, maxMicrobatches, 0, tr("Group"), widget);
    m_group->setSpecialValueText(tr("as many as devices"));
    m_pieces = makeSpin(0, maxMicrobatches, 0, tr("Pieces"), widget);
    m_pieces->setSpecialValueText(tr("%1 per sequence").arg(defaultSequencePieces));
    m_pieces->setToolTip(tr("Seq1F1B: pieces of each microbatch's sequence; a divisor of the sequence"));
    m_recompute = makeChoice(tr("Recomputed"), fieldWidth, widget);
    addRecomputes(*m_recompute);
    m_layout = makeChoice(tr("Where the workers' blocks run"), fieldWidth, widget);
    m_layout->setToolTip(tr(
        "As a pipeline: stage j on device j, for all workers. Triangle: a device per stage and microbatch in flight. "
        "Sharded states: each stage's weights are kept once and sent to the device that works on the stage next."));
    const std::pair<WorkerLayout, QString> layouts[] = {{WorkerLayout::Pipeline, tr("as a pipeline")},
                                                        {WorkerLayout::Workers, tr("one device per worker")},
                                                        {WorkerLayout::Sharded, tr("per worker, sharded states")},
                                                        {WorkerLayout::Triangle, tr("triangle of devices")},
                                                        {WorkerLayout::Single, tr("all on one device")}};
    for (const auto& [layout, name] : layouts)
        m_layout->addItem(name, int(layout));
    m_workers = makeSpin(0, maxDevices, 0, tr("Workers"), widget);
    m_workers->setSpecialValueText(tr("as the devices say"));
    m_workers->setToolTip(tr("Workers of data parallel training, and stages; on one device they must be named"));
    m_group->setToolTip(tr("Interleaving: microbatches that go through a chunk before the next chunk's turn"));

    form->addRow(makeHeading(tr("Model")));
    addRow(form, tr("Preset"), m_model);
    addRow(form, tr("Sequence"), m_sequence);
    addRow(form, tr("Microbatch size"), m_microbatchSize);
    form->addRow(makeHeading(tr("Devices")));
    addRow(form, tr("Cluster"), m_cluster);
    addRow(form, tr("Count"), m_devices);
    form->addRow(makeHeading(tr("Schedule")));
    addRow(form, tr("Family"), m_family);
    form->addRow(nullptr, m_description);
    addRow(form, tr("Microbatches"), m_microbatches);
    addRow(form, tr("Replicas"), m_replicas);
    addRow(form, tr("Shared states"), m_zero);
    addRow(form, tr("Chunks per device"), m_chunks);
    addRow(form, tr("Group"), m_group);
    addRow(form, tr("Pieces"), m_pieces);
    addRow(form, tr("Recomputed"), m_recompute);
    addRow(form, tr("Placed"), m_layout);
    addRow(form, tr("Workers"), m_workers);
    return widget;
}

QWidget* NewScheduleDialog::buildPreview()
{
    auto* widget = new QWidget(this);
    auto* layout = makeLayout<QVBoxLayout>(widget, {0, 0, 0, 0}, 12);
    m_numbers = new FactList(widget);
    m_state = makeCaption({}, TextSize::Small, widget);
    m_faults = new QLabel(widget);
    m_faults->setWordWrap(true);
    m_faults->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_faults->setAccessibleName(tr("What is wrong"));
    m_faults->setMinimumWidth(240);
    m_groups = new ParallelismFields(fieldWidth, widget); // here: the form is as high as a small screen
    layout->addWidget(makeHeading(tr("Groups and copies of devices"), widget));
    layout->addWidget(m_groups);
    layout->addWidget(makeHeading(tr("Predicted"), widget));
    layout->addWidget(m_numbers);
    layout->addWidget(m_state);
    layout->addWidget(m_faults);
    layout->addStretch(1);
    return widget;
}

void NewScheduleDialog::chooseModelFile(const QString& path)
{
    m_model->insertItem(0, QFileInfo(path).fileName(), path);
    m_model->setItemData(0, path, Qt::ToolTipRole);
    m_model->setCurrentIndex(0);
    takeModel();
}

/// Asks for the file when its entry was chosen; the model that was chosen before stays until there is one.
void NewScheduleDialog::openOwnModel()
{
    if (m_model->currentData() != ownFile)
        return;
    choose(m_model, m_takenModel);
    auto* dialog = new QFileDialog(this, tr("Open a model"), {}, tr("Models (*.json *.csv)"));
    dialog->setFileMode(QFileDialog::ExistingFile);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &QFileDialog::fileSelected, this, &NewScheduleDialog::chooseModelFile);
    dialog->open();
}

void NewScheduleDialog::takeModel()
{
    if (m_model->currentData() == ownFile)
        return; // openOwnModel() goes on
    m_takenModel = m_model->currentData().toString();
    try {
        const ModelShape shape = loadModel(chosenIn(m_model)).shape;
        // The layers of a table are valid only for the microbatch with which they were measured.
        for (QWidget* field : {static_cast<QWidget*>(m_sequence), static_cast<QWidget*>(m_microbatchSize)})
            field->setEnabled(shape.architecture != Architecture::Table);
        const QSignalBlocker quietSequence(m_sequence), quietSize(m_microbatchSize);
        m_sequence->setValue(static_cast<int>(shape.sequence));
        m_microbatchSize->setValue(static_cast<int>(shape.microbatchSize));
        m_groups->setValue(shape.parallel);
    } catch (const Error&) {
        // request() reports it
    }
    request();
}

void NewScheduleDialog::takeFamily()
{
    const Family* family = findFamily(chosenIn(m_family));
    if (family) {
        m_description->setText(QString::fromUtf8(family->description));
        m_chunks->setEnabled(family->chunksSelectable);
        m_group->setEnabled(family->interleaves);
        m_chunks->setSpecialValueText(tr("%1, the family's own").arg(family->defaultChunks));
        m_pieces->setEnabled(family->cutsSequences);
        for (QWidget* field : {static_cast<QWidget*>(m_layout), static_cast<QWidget*>(m_workers)})
            m_form->setRowVisible(NotedField::around(field), family->dataParallel);
        for (QWidget* field : {m_chunks, m_group, m_pieces}) // not used by these families
            m_form->setRowVisible(NotedField::around(field), !family->dataParallel);
        const QSignalBlocker quietChunks(m_chunks), quietGroup(m_group), quietPieces(m_pieces);
        if (!family->cutsSequences)
            m_pieces->setValue(0);
        if (!family->chunksSelectable)
            m_chunks->setValue(0);
        if (!family->interleaves)
            m_group->setValue(0);
    }
    request();
}

NewScheduleDialog::Choice NewScheduleDialog::choice() const
{
    Choice all;
    NewDesign& choice = all.design;
    ModelFile model = loadModel(chosenIn(m_model));
    ModelShape& shape = model.shape;
    shape.sequence = m_sequence->value();
    shape.microbatchSize = m_microbatchSize->value();
    shape.parallel = m_groups->value();
    choice.workload = makeWorkload(shape, Optimizer::AdamW, model.source);
    choice.cluster = m_presets->cluster(chosenIn(m_cluster), m_devices->value(), shape.parallel.devicesPerStage());
    choice.family = chosenIn(m_family);
    choice.microbatches = m_microbatches->value();
    choice.replicas = m_replicas->value();
    choice.zero.level = m_zero->currentData().toInt();
    if (m_chunks->value() > 0)
        choice.chunks = m_chunks->value();
    if (m_group->value() > 0)
        choice.group = m_group->value();
    if (m_pieces->value() > 0)
        choice.pieces = m_pieces->value();
    if (const Family* family = findFamily(choice.family); family && family->dataParallel) {
        choice.layout = static_cast<WorkerLayout>(m_layout->currentData().toInt());
        if (m_workers->value() > 0)
            choice.workers = m_workers->value();
    }
    all.recompute = chosenRecompute(*m_recompute);
    return all;
}

void NewScheduleDialog::request()
{
    m_buttons->button(QDialogButtonBox::Ok)->setEnabled(false);
    m_state->setText(tr("working it out …"));
    try {
        m_work.start([this, choice = choice()](const auto&) { return work(choice); },
                     [this](const Outcome& outcome) { showOutcome(outcome); });
    } catch (const Error& error) {
        m_work.drop();
        Outcome outcome;
        outcome.diagnostics = error.diagnostics();
        showOutcome(outcome);
    }
}

NewScheduleDialog::~NewScheduleDialog() = default;

NewScheduleDialog::Outcome NewScheduleDialog::work(const Choice& choice) const
{
    Outcome outcome;
    try {
        outcome.design = designFromModel(choice.design);
        if (choice.recompute != Recompute::None)
            outcome.design = withRecompute(
                outcome.design, std::vector<Recompute>(outcome.design.schedule.deviceOfStage.size(), choice.recompute));
        const Prediction prediction = m_members->predictPlaced(outcome.design, MemberPredictor::Patience::Any);
        const Metrics& metrics = prediction.metrics;
        const int fullest = fullestDevice(metrics);
        outcome.numbers = {{tr("makespan"), durationText(metrics.makespan)},
                           {tr("bubble"), percentText(metrics.rateMakespan)},
                           {tr("bubble of the span"), percentText(metrics.rateSpan)}};
        if (fullest >= 0) {
            const Bytes peak = metrics.devices[fullest].peakBytes;
            const Bytes limit = outcome.design.cluster.devices[fullest].memory;
            outcome.numbers.emplace_back(tr("peak memory"), sizeText(peak));
            outcome.numbers.emplace_back(
                tr("activations kept"),
                tr("of %1 microbatches").arg(metrics.devices[fullest].peakActivations, 0, 'f', 1));
            if (limit > 0 && peak > limit)
                outcome.diagnostics.push_back({Severity::Warning, deviceLabel(outcome.design, fullest).toStdString(),
                                               "peak memory is above the device's " + sizeText(limit).toStdString(),
                                               "a family with less memory, a smaller microbatch or more devices"});
        }
        if (const double tokens = tokensPerSecond(outcome.design, metrics.makespan); tokens > 0)
            outcome.numbers.emplace_back(tr("throughput"), tr("%1 tok/s").arg(rateText(tokens)));
        outcome.numbers.emplace_back(tr("blocks"),
                                     QLocale(QLocale::English).toString(qlonglong(outcome.design.schedule.blocks())));
        outcome.good = true;
    } catch (const Error& error) {
        outcome.diagnostics.insert(outcome.diagnostics.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
    return outcome;
}

void NewScheduleDialog::showOutcome(const Outcome& outcome)
{
    std::vector<Fact> facts;
    const QString source = tr("Predicted from the formula costs of model and cluster");
    for (const auto& [name, value] : outcome.numbers) {
        QString tip = source;
        for (const BubbleRate& rate : bubbleRates)
            if (name == QString::fromUtf8(rate.name))
                tip = QString::fromStdString(describe(rate)) + QLatin1Char('\n') + source;
        facts.push_back({name, value, tip, Tone::Plain});
    }
    m_numbers->setFacts(facts);
    m_state->setText(outcome.good ? tr("Costs: %1").arg(QString::fromStdString(outcome.design.costs.source))
                                  : tr("No prediction"));
    m_state->setWordWrap(true);
    m_faults->setText(proseText(markFields(outcome.diagnostics)));
    setTone(m_faults, outcome.good ? Tone::Plain : Tone::Bad);
    m_design = outcome.design;
    m_buttons->button(QDialogButtonBox::Ok)->setEnabled(outcome.good);
}

Diagnostics NewScheduleDialog::markFields(const Diagnostics& diagnostics)
{
    const std::pair<const char*, QWidget*> fields[] = {{"--sequence", m_sequence},
                                                       {"--microbatch-size", m_microbatchSize},
                                                       {"--cluster", m_cluster},
                                                       {"--devices", m_devices},
                                                       {"--microbatches", m_microbatches},
                                                       {"--chunks", m_chunks},
                                                       {"--group", m_group},
                                                       {"--pieces", m_pieces},
                                                       {"--layout", m_layout},
                                                       {"--recompute", m_recompute},
                                                       {"--workers", m_workers}};
    Diagnostics rest = diagnostics;
    for (const auto& [option, field] : fields) {
        NotedField* row = NotedField::around(field);
        const bool shown = m_form->isRowVisible(row);
        row->setNote(shown ? rest : Diagnostics{}, option);
        bool error = false, said = false;
        for (auto each = rest.begin(); shown && each != rest.end();) {
            const bool mine = isAbout(*each, option);
            said = said || mine;
            error = error || (mine && each->severity == Severity::Error);
            each = mine ? rest.erase(each) : each + 1; // shown once
        }
        setTone(qobject_cast<QLabel*>(m_form->labelForField(row)), error ? Tone::Bad : said ? Tone::Plain : Tone::Dim);
    }
    return rest;
}

} // namespace pipewright

#include "moc_newschedule.cpp"
