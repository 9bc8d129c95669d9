// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/model/modelfields.h"

#include "core/base/limits.h"
#include "core/model/transformer.h"
#include "core/predict/bubblerates.h"
#include "core/predict/predict.h"
#include "core/predict/throughput.h"
#include "core/presets/presets.h"
#include "gui/document/document.h"
#include "gui/widgets/choices.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/notedfield.h"
#include "gui/widgets/words.h"

#include <QComboBox>
#include <QFormLayout>
#include <QSignalBlocker>

namespace pipewright {

namespace {

constexpr int dimensionWidth = 190;

template<typename Field>
Field* addNamedRow(QFormLayout* form, const QString& text, Field* field)
{
    field->setAccessibleName(text);
    field->setFixedWidth(dimensionWidth);
    form->addRow(makeCaptionOf(field, text), new NotedField(field));
    return field;
}

} // namespace

ModelFields::ModelFields(QWidget* parent)
    : QWidget(parent), m_preset(new QComboBox(this)), m_precision(new QComboBox(this)),
      m_framework(new QComboBox(this)), m_recompute(new QComboBox(this)), m_cluster(new QComboBox(this)),
      m_note(makeCaption({}, TextSize::Small, this)), m_predicted(new FactList(this))
{
    QFormLayout* left = makeForm(nullptr);
    QFormLayout* right = makeForm(nullptr);
    const auto count = [&](QFormLayout* form, const QString& text, int least, int most, const QString& unit) {
        auto* field = new CountField(this);
        field->setRange(least, most);
        makePlain(*field);
        field->setKeyboardTracking(false);
        if (!unit.isEmpty())
            field->setSuffix(QStringLiteral("\u00a0") + unit);
        return addNamedRow(form, text, field);
    };
    const auto dimension = [&](CountField* field, auto member, bool ofModel) {
        using Value = std::remove_reference_t<decltype(std::declval<ModelShape&>().*member)>;
        m_dimensions.push_back(
            {field, [member](const ModelShape& shape) { return static_cast<qint64>(shape.*member); },
             [member](ModelShape& shape, qint64 value) { shape.*member = static_cast<Value>(value); }, ofModel});
    };
    left->addRow(makeHeading(tr("Model"), this));
    addNamedRow(left, tr("Preset"), m_preset);
    constexpr int widest = 1 << 24;
    dimension(count(left, tr("Layers"), 1, 4096, {}), &ModelShape::layers, true);
    dimension(count(left, tr("Hidden size"), 1, widest, {}), &ModelShape::hidden, true);
    dimension(count(left, tr("MLP width"), 1, widest, {}), &ModelShape::ffn, true);
    dimension(count(left, tr("Heads"), 1, 65'536, {}), &ModelShape::heads, true);
    dimension(count(left, tr("Key-value heads"), 1, 65'536, {}), &ModelShape::keyValueHeads, true);
    dimension(count(left, tr("Head size"), 1, 65'536, {}), &ModelShape::headSize, true);
    dimension(count(left, tr("Vocabulary"), 1, widest, {}), &ModelShape::vocabulary, true);
    right->addRow(makeHeading(tr("Batch, precision and cluster"), this));
    dimension(count(right, tr("Sequence"), 1, 1 << 22, tr("tokens")), &ModelShape::sequence, false);
    dimension(count(right, tr("Microbatch size"), 1, 1 << 16, tr("seq")), &ModelShape::microbatchSize, false);
    m_microbatches = count(right, tr("Microbatches"), 1, maxMicrobatches, {});
    m_microbatches->setToolTip(tr("Of a step. Another number makes the family's schedule anew"));
    addNamedRow(right, tr("Precision"), m_precision);
    for (const NamedPrecision& each : precisions)
        m_precision->addItem(QString::fromUtf8(each.name.data(), qsizetype(each.name.size())));
    m_precision->setToolTip(
        tr("Of the matrix products in the layers. With fp8 and nvfp4 the rest of the model is bf16; with -parameters "
           "what such products read is held and gathered in their type alone (Megatron-LM's --fp8-param-gather). "
           "Such designs are predicted, not trained here."));
    addNamedRow(right, tr("Framework"), m_framework);
    for (const FrameworkFacts& facts : frameworks)
        m_framework->addItem(QString::fromUtf8(facts.name));
    m_framework->addItem(tr("own"));
    addNamedRow(right, tr("Recomputed"), m_recompute);
    addNamedRow(right, tr("Cluster"), m_cluster);
    m_cluster->setToolTip(tr("Devices and links of a preset; single ones are edited under Devices and Links"));
    m_note->setWordWrap(true);
    m_preset->addItem(tr("as in this design"), QString());
    try {
        for (const Preset& preset : presetsByTitle(PresetLibrary(), PresetKind::Model))
            m_preset->addItem(QString::fromStdString(preset.title), QString::fromStdString(preset.name));
    } catch (const Error& error) {
        m_preset->setEnabled(false);
        m_preset->setToolTip(proseText(error));
    }

    auto* columns = new QHBoxLayout;
    columns->setSpacing(40);
    columns->addLayout(left);
    columns->addLayout(right);
    auto* facts = new QVBoxLayout;
    facts->setSpacing(9);
    facts->addWidget(makeHeading(tr("Predicted of this design"), this));
    facts->addWidget(m_predicted);
    facts->addStretch(1);
    m_predicted->setFixedWidth(260);
    columns->addLayout(facts);
    columns->addStretch(1);
    auto* layout = makeLayout<QVBoxLayout>(this, {0, 12, 0, 0}, 14);
    layout->addLayout(columns);
    layout->addWidget(m_note);

    for (QComboBox* combo : {m_recompute, m_cluster, m_precision, m_framework, m_preset})
        connect(combo, &QComboBox::activated, this, [this, combo] { m_asked = combo; }); // before the edit
    for (std::size_t i = 0; i < m_dimensions.size(); ++i)
        connect(m_dimensions[i].field, &QSpinBox::valueChanged, this, [this, i] { take(m_dimensions[i]); });
    connect(m_microbatches, &QSpinBox::valueChanged, this, [this](int microbatches) {
        m_asked = m_microbatches;
        Q_EMIT microbatchesWanted(microbatches);
    });
    connect(m_precision, &QComboBox::activated, this, [this] {
        ModelShape shape = m_shape;
        if (const auto chosen = precisionNamed(m_precision->currentText().toStdString()))
            shape.setPrecision(*chosen);
        if (shape != m_shape)
            Q_EMIT shapeWanted(shape, tr("Train in %1").arg(m_precision->currentText()));
    });
    connect(m_framework, &QComboBox::activated, this, [this] {
        ModelShape shape = m_shape;
        const auto chosen = frameworkNamed(m_framework->currentText().toStdString());
        shape.framework = chosen.value_or(m_shape.framework);
        showFramework(m_shape.framework); // until the edit is made
        if (shape.framework != m_shape.framework)
            Q_EMIT shapeWanted(shape, tr("Keep what the framework does: %1")
                                          .arg(QString::fromStdString(std::string(nameOf(shape.framework)))));
    });
    connect(m_preset, &QComboBox::activated, this, [this] {
        if (const QString name = m_preset->currentData().toString(); !name.isEmpty())
            Q_EMIT presetWanted(name);
    });
}

CountField* ModelFields::field(const QString& name) const
{
    for (CountField* each : findChildren<CountField*>())
        if (each->accessibleName() == name)
            return each;
    return nullptr;
}

void ModelFields::take(const Dimension& dimension)
{
    m_asked = dimension.field;
    ModelShape shape = m_shape;
    dimension.set(shape, dimension.field->value());
    if (dimension.get(shape) == dimension.get(m_shape))
        return;
    // It is no longer the published model of this name.
    const std::string changed = tr(", changed").toStdString();
    if (dimension.ofModel && !shape.name.ends_with(changed))
        shape.name += changed;
    Q_EMIT shapeWanted(
        shape,
        tr("Set the model's %1 to %2").arg(dimension.field->accessibleName().toLower(), dimension.field->text()));
}

/// Properties of one's own have no preset: a design file lists them.
void ModelFields::showFramework(const FrameworkMemory& framework)
{
    const std::string_view name = nameOf(framework);
    const int found = m_framework->findText(QString::fromUtf8(name));
    m_framework->setCurrentIndex(found < 0 ? m_framework->count() - 1 : found);
    QStringList lines{framework == FrameworkMemory{}
                          ? tr("What a training framework keeps in memory besides: nothing, as the built-in backends")
                          : tr("Kept in memory besides, which the built-in backends do not allocate:")};
    for (const std::string& words : wordsOf(framework))
        lines << QString::fromStdString(words);
    m_framework->setToolTip(lines.join(QLatin1Char('\n')));
}

void ModelFields::setFault(const QString& text)
{
    for (NotedField* each : findChildren<NotedField*>())
        each->setNote({}, Tone::Plain);
    if (m_asked)
        NotedField::around(m_asked)->setNote(text, Tone::Bad);
}

void ModelFields::showPredicted(const Design& design, const Prediction* prediction)
{
    std::vector<Fact> facts;
    if (design.workload)
        facts.push_back({tr("parameters"),
                         tr("%1\u00a0B").arg(double(parameterCount(*design.workload)) / 1e9, 0, 'f', 2),
                         tr("All of the model's, a tied one counted once, in billions"), Tone::Plain});
    if (prediction) {
        const QString source = tr("Predicted. Costs: %1").arg(QString::fromStdString(design.costs.source));
        const Metrics& metrics = prediction->metrics;
        facts.push_back({tr("step"), durationText(metrics.makespan), source, Tone::Plain});
        facts.push_back({tr("bubble"), percentText(metrics.rateMakespan),
                         QString::fromStdString(describe(rateOfMakespan)) + QLatin1Char('\n') + source, Tone::Plain});
        if (const int fullest = fullestDevice(metrics); fullest >= 0) {
            const Bytes peak = metrics.devices[fullest].peakBytes;
            const Bytes limit =
                fullest < std::ssize(design.cluster.devices) ? design.cluster.devices[fullest].memory : 0;
            if (isMemoryPending(design, *prediction))
                facts.push_back({tr("peak"), QStringLiteral("…"),
                                 tr("What the members of the groups hold is not known yet"), Tone::Dim});
            else
                facts.push_back({tr("peak, %1").arg(deviceLabel(design, fullest)), sizeBeside(peak, limit), source,
                                 limit > 0 && peak > limit ? Tone::Bad : Tone::Plain});
            if (limit > 0)
                if (const Bytes reserved = design.workload ? reservedBytes(peak, design.workload->shape.framework) : 0;
                    reserved > 0)
                    facts.push_back({tr("reserved"), sizeBeside(reserved, limit),
                                     tr("What the framework's allocator takes of the device: %1 of it is not in use")
                                         .arg(percentText(design.workload->shape.framework.cached)),
                                     Tone::Dim});
            if (limit > 0)
                facts.push_back(
                    {tr("of its memory"), sizeBeside(limit, peak), tr("Of the cluster's description"), Tone::Dim});
        }
        if (const double tokens = tokensPerSecond(design, metrics.makespan); tokens > 0)
            facts.push_back({tr("throughput"), tr("%1 tok/s").arg(rateText(tokens)), source, Tone::Plain});
        if (const double share = modelFlopsUtilization(design, metrics.makespan); share > 0)
            facts.push_back({tr("MFU"), percentText(share),
                             tr("Model FLOPs utilization, with attention counted as whole squares. %1").arg(source),
                             Tone::Plain});
    } else {
        facts.push_back({tr("step"), QStringLiteral("–"), tr("The placed blocks cannot run"), Tone::Dim});
    }
    m_predicted->setFacts(facts);
}

void ModelFields::setDesign(const Design& design, const Prediction* prediction)
{
    const bool known = design.workload.has_value() && !design.layersPerStage.empty();
    const bool table = known && design.workload->shape.architecture == Architecture::Table;
    m_shape = known ? design.workload->shape : ModelShape{};
    for (const Dimension& each : m_dimensions) {
        const QSignalBlocker quiet(each.field);
        each.field->setValue(static_cast<int>(each.get(m_shape)));
        each.field->setEnabled(known && !table);
    }
    const QSignalBlocker quiet(m_microbatches), quietPrecision(m_precision), quietPreset(m_preset);
    m_microbatches->setValue(design.schedule.microbatches / std::max(1, design.schedule.sequencePieces));
    m_precision->setCurrentIndex(
        m_precision->findText(QString::fromStdString(std::string(nameOf(m_shape.precision())))));
    m_precision->setEnabled(known && !table);
    showFramework(m_shape.framework);
    m_framework->setEnabled(known && !table);
    m_recompute->setEnabled(known);
    showPredicted(design, prediction);
    m_preset->setCurrentIndex(std::max(0, m_preset->findData(QString::fromStdString(m_shape.name))));
    m_preset->setEnabled(known && m_preset->count() > 1);
    const bool experts = known && m_shape.experts > 0;
    m_note->setText(!known ? tr("This design has given times and no model. File › New makes one from a model.")
                    : table
                        ? tr("The layers come from a table, which holds for the sequence and the microbatch that they "
                             "were measured with.")
                        : tr("%1Stages are cut anew when the number of layers changes. What single stages recompute "
                             "is chosen under Stages, single devices and links under Devices and Links.")
                              .arg(experts ? tr("Experts stay as they are; a model file changes them. ") : QString()));
}

} // namespace pipewright

#include "moc_modelfields.cpp"
