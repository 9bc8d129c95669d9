// SPDX-License-Identifier: GPL-3.0-or-later
// The window and its edits. modeltables.cpp fills its tables; keptactivations.cpp edits what stages keep in memory.
#include "gui/model/modelwindow.h"

#include "gui/model/recomputechoices.h"

#include "core/base/rates.h"
#include "core/design/redesign.h"
#include "core/model/parallelism.h"
#include "core/presets/clusterjson.h"
#include "core/presets/modelfile.h"
#include "core/presets/modeljson.h"
#include "core/presets/presets.h"
#include "gui/memory/memorybars.h"
#include "gui/model/modelfields.h"
#include "gui/model/nodefields.h"
#include "gui/model/parallelismfields.h"
#include "gui/model/partitionbar.h"
#include "gui/model/thismachine.h"
#include "gui/model/zerofields.h"
#include "gui/widgets/closingrow.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/onscreen.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/valuetable.h"
#include "gui/widgets/words.h"

#include <QAction>
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QTabWidget>

#include <algorithm>
#include <numeric>

namespace pipewright {

namespace {

constexpr std::int64_t mostBlocksWhileDragging = 40'000;

constexpr int recomputeColumn = 10, offloadColumn = 11; // of the stages

} // namespace

ModelWindow::ModelWindow(Document& document, QWidget* parent)
    : QDialog(parent), m_document(document), m_tabs(new QTabWidget(this)), m_model(new ModelFields(this)),
      m_clusterPreset(new QComboBox(this)), m_partition(new PartitionBar(this)), m_measure(new QComboBox(this)),
      m_recompute(new QComboBox(this)), m_zero(new ZeroFields(this)), m_effect(makeNumber({}, TextSize::Small, this)),
      m_stages(new ValueTable(tr("Stages"),
                              {tr("stage"), tr("on"), tr("layers + ends"), tr("forward"), tr("input grad"),
                               tr("weight grad"), tr("weights"), tr("gradients"), tr("optimizer"), tr("activations"),
                               tr("recomputes"), tr("offloads")},
                              this)),
      m_layers(new ValueTable(
          tr("Layers"),
          {tr("layer"), tr("stage"), tr("forward"), tr("backward"), tr("parameters"), tr("saved"), tr("output")},
          this)),
      m_devices(
          new ValueTable(tr("Devices"),
                         {tr("device"), tr("name"), tr("memory"), tr("peak rate"), tr("efficiency"),
                          tr("memory bandwidth"), tr("runs on GPU"), tr("multiprocessors"), tr("half-rate width")},
                         this)),
      m_mapping(makeCaption({}, TextSize::Small, this)),
      m_machine(new ThisMachine([this] { return m_document.design().schedule.devices(); }, this)),
      m_links(new ValueTable(tr("Links"), {tr("between"), tr("name"), tr("latency"), tr("bandwidth")}, this)),
      m_buses(makeCaption({}, TextSize::Small, this)), m_communication(new QComboBox(this)),
      m_groups(new ParallelismFields(240, this)), m_nodes(new NodeFields(240, this)),
      m_inGroups(makeCaption({}, TextSize::Small, this)), m_memory(new MemoryBars(this)),
      m_modelMemory(new MemoryBars(this)), m_source(makeCaption({}, TextSize::Small, this)), m_fault(new QLabel(this))
{
    onThemeChange(this, [this] {
        if (isVisible())
            refresh();
    });
    setWindowTitle(tr("Model and cluster"));
    setWindowFlag(Qt::WindowMinMaxButtonsHint);
    makePanel(this);
    m_tabs->setAccessibleName(tr("Premises"));
    m_tabs->addTab(buildModel(), tr("Model"));
    m_tabs->addTab(buildStages(), tr("Stages"));
    m_tabs->addTab(m_layers, tr("Layers"));
    m_tabs->addTab(buildDevices(), tr("Devices"));
    m_tabs->addTab(buildLinks(), tr("Links"));
    m_tabs->addTab(buildGroups(), tr("Groups"));
    m_fault->setWordWrap(true);
    m_fault->setAccessibleName(tr("Why the edit was refused"));
    setTone(m_fault, Tone::Bad);
    QHBoxLayout* bottom = makeClosingRow(*this);
    bottom->insertWidget(0, m_source, 1);
    auto* layout = makeLayout<QVBoxLayout>(this, {24, 14, 24, 18}, 12);
    layout->addWidget(m_tabs, 1);
    layout->addWidget(m_fault);
    layout->addLayout(bottom);

    m_stages->setColumnTip(
        2,
        tr("Layers of the stage, embedding and head counted too. Changing it takes from or gives to the next stage."));
    m_stages->setColumnTip(9, tr("Live at the fullest moment of the stage's device, and of how many microbatches"));
    m_stages->setColumnTip(
        recomputeColumn, tr("none: F keeps all activations; full: the backward makes them again, layer by layer, from "
                            "the layers' inputs; every:4: four layers at a time; selective: it makes the attention "
                            "cores again; block, block-selective: R blocks do, before the backward"));
    m_stages->setColumnTip(offloadColumn,
                           tr("yes: what F keeps waits in the host's memory for the backward, as far as there is time "
                              "for both ways; auto: the stages that cost no time, and as many more as memory needs"));
    m_devices->setColumnTip(3, tr("Dense arithmetic at the model's precision"));
    m_devices->setColumnTip(4, tr("Share of the peak rate that large matrix products reach end to end"));
    m_devices->setColumnTip(halfRateColumn,
                            tr("The width of a weight matrix, on its narrower side, with which a product reaches half "
                               "of that efficiency; empty: all widths are alike"));
    m_devices->setColumnTip(gpuColumn, tr("Which GPU of the machine the CUDA backend runs the device on, counted from "
                                          "0. Several devices may share one."));
    m_devices->setColumnTip(
        multiprocessorsColumn,
        tr("Of the GPU's, a slice that is the device's own; empty: the whole GPU, shared with the others on it"));
    connect(m_measure, &QComboBox::currentIndexChanged, this, [this](int index) {
        m_partition->setMeasure(index == 0 ? PartitionBar::Measure::Work : PartitionBar::Measure::Parameters);
    });
    connect(m_model, &ModelFields::shapeWanted, this, &ModelWindow::setModel);
    connect(m_model, &ModelFields::presetWanted, this, &ModelWindow::takeModelPreset);
    connect(m_model, &ModelFields::microbatchesWanted, this, &ModelWindow::setMicrobatches);
    addClusterPresets(m_model->cluster());
    for (QComboBox* combo : {m_recompute, &m_model->recompute()}) {
        addRecomputes(*combo);
        combo->addItem(tr("as listed by stage"));
    }
    for (QComboBox* combo : {m_clusterPreset, &m_model->cluster()})
        connect(combo, &QComboBox::activated, this, [this, combo] {
            if (const QString name = combo->currentData().toString(); !name.isEmpty())
                takeClusterPreset(name);
        });
    connect(m_partition, &PartitionBar::previewed, this, &ModelWindow::showEffect);
    connect(m_partition, &PartitionBar::cancelled, this, [this] { m_effect->clear(); });
    connect(m_partition, &PartitionBar::moved, this, &ModelWindow::takePartition);
    connect(m_stages, &ValueTable::edited, this, [this](int row, int column, const QString& text) {
        if (column == recomputeColumn)
            setRecomputeOfStage(row, text);
        else if (column == offloadColumn)
            setOffloadOfStage(row, text);
        else
            setLayersOfStage(row, text);
    });
    for (QComboBox* combo : {m_recompute, &m_model->recompute()})
        connect(combo, &QComboBox::activated, this, [this, combo](int index) {
            if (index + 1 < combo->count()) // the last one says that stages differ
                setRecompute(chosenRecompute(*combo));
        });
    connect(m_zero, &ZeroFields::edited, this, &ModelWindow::setZero);
    connect(m_devices, &ValueTable::edited, this, &ModelWindow::setDeviceValue);
    connect(m_links, &ValueTable::edited, this, &ModelWindow::setLinkValue);
    connect(&m_document, &Document::designChanged, this, &ModelWindow::refresh);
    connect(&m_document, &Document::memoryChanged, this, &ModelWindow::refresh);
    resizeOnScreen(*this, {1060, 710}); // shows the memory of four devices, and all fields of groups
}

QWidget* ModelWindow::buildModel()
{
    auto* page = new QWidget(this);
    auto* scroll = new QScrollArea(page); // fields and bars together are higher than a small screen
    scroll->setWidget(m_modelMemory);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setFocusPolicy(Qt::NoFocus);
    makePanel(scroll->viewport());
    auto* layout = makeLayout<QVBoxLayout>(page, {0, 0, 0, 0}, 10);
    layout->addWidget(m_model);
    layout->addWidget(makeHeading(tr("Memory at each device's fullest moment, predicted"), page));
    layout->addWidget(scroll, 1);
    return page;
}

QWidget* ModelWindow::buildStages()
{
    auto* page = new QWidget(this);
    m_measure->addItems({tr("width: work"), tr("width: parameters")});
    m_measure->setAccessibleName(tr("What the width of a layer shows"));
    m_effect->setAccessibleName(tr("Effect of the drag"));
    m_recompute->setAccessibleName(tr("Recomputed in every stage"));
    auto* hint = makeCaption(tr("drag borders, or ← → and Alt+← →"), TextSize::Small, page);
    hint->setToolTip(
        tr("Drag a border, or choose it with ← → and move it with Alt+← Alt+→. Violet: embedding and head."));
    hint->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred); // cut off in a narrow window
    auto* header = new QHBoxLayout;
    header->addWidget(makeHeading(tr("Layers cut into stages"), page));
    header->addSpacing(16);
    header->addWidget(hint, 1);
    header->addWidget(m_effect);
    header->addSpacing(8);
    header->addWidget(makeCaption(tr("recomputed"), TextSize::Normal, page));
    header->addWidget(m_recompute);
    header->addWidget(m_measure);
    auto* memory = new QHBoxLayout;
    memory->addWidget(makeHeading(tr("Memory at each device's fullest moment"), page));
    memory->addStretch(1);
    memory->addWidget(m_zero);
    auto* layout = makeLayout<QVBoxLayout>(page, {0, 12, 0, 0}, 10);
    layout->addLayout(header);
    // Extra space goes to the parts that can use it.
    layout->addWidget(m_partition, 1);
    layout->addWidget(m_stages, 3);
    layout->addLayout(memory);
    layout->addWidget(m_memory, 3);
    layout->addStretch(0);
    return page;
}

QWidget* ModelWindow::buildDevices()
{
    auto* page = new QWidget(this);
    m_mapping->setWordWrap(true);
    auto* layout = makeLayout<QVBoxLayout>(page, {0, 12, 0, 0}, 10);
    addClusterPresets(*m_clusterPreset);
    auto* preset = new QHBoxLayout;
    preset->setSpacing(10);
    m_clusterPreset->setAccessibleName(tr("Cluster preset"));
    m_clusterPreset->setMinimumWidth(220);
    preset->addWidget(makeCaptionOf(m_clusterPreset, tr("Take the devices and links of")));
    preset->addWidget(m_clusterPreset);
    preset->addStretch(1);
    layout->addLayout(preset);
    layout->addWidget(m_mapping); // above the table, which is usually shorter than the page
    layout->addWidget(m_devices, 1);
    layout->addWidget(m_machine);
    connect(m_machine, &ThisMachine::measured, this, [this](const Cluster& cluster) {
        commit(tr("Take this machine"), [&] { return withCluster(m_document.design(), cluster); });
    });
    return page;
}

void ModelWindow::addClusterPresets(QComboBox& combo)
{
    combo.addItem(tr("as in this design"), QString());
    try {
        for (const Preset& preset : PresetLibrary().list(PresetKind::Cluster))
            combo.addItem(QString::fromStdString(preset.title), QString::fromStdString(preset.name));
    } catch (const Error& error) {
        combo.setEnabled(false);
        combo.setToolTip(proseText(error));
    }
}

QWidget* ModelWindow::buildLinks()
{
    auto* page = new QWidget(this);
    const auto spin = [page](const QString& name) {
        auto* field = new CountField(page);
        field->setRange(0, maxDevices - 1);
        field->setButtonSymbols(QAbstractSpinBox::NoButtons);
        field->setAccessibleName(name);
        field->setFixedWidth(60);
        return field;
    };
    auto* from = spin(tr("From device"));
    auto* to = spin(tr("To device"));
    to->setValue(1);
    auto* add = new QPushButton(tr("Add a link"), page);
    add->setToolTip(tr("Gives this directed pair its own link, which starts as a copy of the common one"));
    add->setAutoDefault(false);
    auto* remove = new QPushButton(tr("Remove"), page);
    remove->setAutoDefault(false);
    auto* removeKey = new QAction(tr("Remove the link"), m_links);
    removeKey->setShortcut(Qt::Key_Delete);
    removeKey->setShortcutContext(Qt::WidgetShortcut);
    m_links->addAction(removeKey);
    m_communication->setAccessibleName(tr("How transfers run"));
    for (const QString& kind : {tr("transfers beside each other"), tr("one stream of transfers per device"),
                                tr("transfers hold up their devices")}) // in the order of Communication
        m_communication->addItem(kind);
    m_communication->setToolTip(tr("One stream: sends and receives of a device run in the order of its list, each "
                                   "together with its other side, as NCCL under PyTorch's schedules"));
    connect(m_communication, &QComboBox::activated, this,
            [this](int index) { setCommunication(static_cast<Communication>(index)); });
    auto* bar = new QHBoxLayout;
    bar->setSpacing(8);
    for (QWidget* widget :
         std::initializer_list<QWidget*>{makeCaption(tr("from"), TextSize::Normal, page), from,
                                         makeCaption(tr("to"), TextSize::Normal, page), to, add, remove})
        bar->addWidget(widget);
    bar->addStretch(1);
    bar->addWidget(m_communication);
    auto* layout = makeLayout<QVBoxLayout>(page, {0, 12, 0, 0}, 10);
    m_buses->setWordWrap(true);
    layout->addWidget(m_links, 100);
    layout->addWidget(m_buses); // below the rows
    layout->addLayout(bar);
    layout->addStretch(1);
    connect(add, &QPushButton::clicked, this, [this, from, to] { addLink(from->value(), to->value()); });
    connect(remove, &QPushButton::clicked, this, &ModelWindow::removeLink);
    connect(removeKey, &QAction::triggered, this, &ModelWindow::removeLink);
    return page;
}

QWidget* ModelWindow::buildGroups()
{
    auto* page = new QWidget(this);
    m_inGroups->setWordWrap(true);
    auto* layout = makeLayout<QVBoxLayout>(page, {0, 12, 0, 0}, 10);
    layout->addWidget(m_inGroups);
    layout->addWidget(m_groups);
    layout->addWidget(makeHeading(tr("Nodes"), page));
    layout->addWidget(m_nodes);
    layout->addStretch(1);
    connect(m_nodes, &NodeFields::edited, this, [this] {
        commit(tr("Set how devices stand in nodes"), [&] {
            Cluster cluster = m_document.design().cluster;
            cluster.nodes = withChange(cluster, m_nodes->value());
            return withCluster(m_document.design(), std::move(cluster));
        });
    });
    connect(m_groups, &ParallelismFields::edited, this, [this] {
        const Parallelism wanted = m_groups->value();
        const QString text = QString::fromStdString(textOf(wanted));
        commit(text.isEmpty() ? tr("Hold every stage on one device") : tr("Share out every stage: %1").arg(text),
               [&] { return withParallelism(m_document.design(), wanted); });
    });
    return page;
}

QString ModelWindow::fault() const
{
    return m_fault->text();
}

QString ModelWindow::effect() const
{
    return m_effect->text();
}

QString ModelWindow::buses() const
{
    return m_buses->text();
}

QString ModelWindow::mapping() const
{
    return m_mapping->text();
}

void ModelWindow::showEvent(QShowEvent* event)
{
    QDialog::showEvent(event);
    refresh();
}

void ModelWindow::commit(const QString& what, const std::function<Design()>& make)
{
    try {
        m_document.replaceDesign(make(), what);
        showFault({});
    } catch (const Error& error) {
        showFault(proseText(error));
    }
    refresh();
}

void ModelWindow::showFault(const QString& text)
{
    // An error on the model's page is shown below its field. For the tables, one label serves all cells.
    const bool ofModel = m_tabs->currentIndex() == Model;
    m_model->setFault(ofModel ? text : QString());
    m_fault->setText(ofModel ? QString() : text);
    m_fault->setVisible(!m_fault->text().isEmpty());
}

void ModelWindow::setModel(const ModelShape& shape, const QString& what)
{
    commit(what, [&] { return withModel(m_document.design(), shape); });
}

void ModelWindow::takeModelPreset(const QString& name)
{
    commit(tr("Take the model %1").arg(name), [&] {
        ModelShape shape = loadModel(name.toStdString()).shape;
        if (const auto& workload = m_document.design().workload) { // these belong to the cluster and what runs there
            shape.parallel = workload->shape.parallel;
            shape.framework = workload->shape.framework;
        }
        return withModel(m_document.design(), shape);
    });
}

void ModelWindow::setMicrobatches(int microbatches)
{
    commit(tr("Train with %n microbatches", "", microbatches), [&] {
        const Family* family = findFamily(m_document.design().schedule.family);
        if (!family)
            throw Error("microbatches", "an order of one's own has the microbatches that were placed",
                        "choose a family at the left, then their number");
        Design base = m_document.design();
        base.schedule.microbatches = microbatches * base.schedule.sequencePieces;
        return withFamily(base, *family);
    });
}

void ModelWindow::takeClusterPreset(const QString& name)
{
    commit(tr("Take the cluster %1").arg(name), [&] {
        const Design& design = m_document.design();
        const std::int64_t members = design.workload ? design.workload->shape.parallel.devicesPerStage() : 1;
        return withCluster(design, PresetLibrary().cluster(name.toStdString(), design.schedule.devices(), members));
    });
    for (QComboBox* combo : {m_clusterPreset, &m_model->cluster()})
        combo->setCurrentIndex(0);
}

void ModelWindow::takePartition(const std::vector<int>& partition)
{
    m_effect->clear();
    const std::vector<int>& before = m_document.design().layersPerStage;
    std::size_t border = 0;
    while (border + 1 < partition.size() && partition[border] == before[border])
        ++border;
    commit(tr("Cut stage %1 at %2 layers").arg(border).arg(partition[border]),
           [&] { return withPartition(m_document.design(), partition); });
}

void ModelWindow::showEffect(const std::vector<int>& partition)
{
    m_effect->clear();
    const Prediction* present = m_document.prediction();
    if (!present || m_document.design().schedule.blocks() > mostBlocksWhileDragging)
        return;
    try {
        const Metrics now = predictPlaced(withPartition(m_document.design(), partition)).metrics;
        const double change = double(now.makespan - present->metrics.makespan)
                              / double(std::max<Nanoseconds>(1, present->metrics.makespan));
        m_effect->setText(
            tr("makespan %1   bubble %2")
                .arg(signedPercent(change), signedPoints(now.rateMakespan - present->metrics.rateMakespan)));
        setTone(m_effect, change < 0 ? Tone::Good : change > 0 ? Tone::Bad : Tone::Dim);
    } catch (const Error& error) {
        m_effect->setText(QString::fromUtf8(error.what()));
        setTone(m_effect, Tone::Bad);
    }
}

void ModelWindow::setLayersOfStage(int stage, const QString& text)
{
    bool ok = false;
    const int wanted = text.toInt(&ok);
    commit(tr("Cut stage %1 at %2 layers").arg(stage).arg(wanted), [&] {
        std::vector<int> partition = m_document.design().layersPerStage;
        if (!ok || wanted < 1)
            throw Error("stage " + std::to_string(stage), "\"" + text.toStdString() + "\" is no number of layers",
                        "every stage holds at least one");
        if (partition.size() < 2)
            throw Error("stage 0", "there is no other stage to give layers to or take them from", "");
        // The last stage exchanges layers with the one before it, others with the next.
        const bool last = stage + 1 == std::ssize(partition);
        const int change = wanted - partition[stage];
        const std::vector<int> moved = withBorderMoved(partition, last ? stage - 1 : stage, last ? -change : change);
        if (moved[stage] != wanted)
            throw Error("stage " + std::to_string(stage),
                        "its neighbour has no " + std::to_string(change) + " layers to give", "every stage keeps one");
        return withPartition(m_document.design(), moved);
    });
}

} // namespace pipewright

#include "moc_modelwindow.cpp"
