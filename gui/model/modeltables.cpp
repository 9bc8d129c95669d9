// SPDX-License-Identifier: GPL-3.0-or-later
// Fills the tables of the model window from the current design.
#include "core/base/rates.h"
#include "core/predict/designcheck.h"
#include "core/predict/stagememory.h"
#include "core/rates/operationrates.h"
#include "gui/memory/memorybars.h"
#include "gui/model/modelfields.h"
#include "gui/model/modelwindow.h"
#include "gui/model/nodefields.h"
#include "gui/model/parallelismfields.h"
#include "gui/model/partitionbar.h"
#include "gui/model/zerofields.h"
#include "gui/widgets/valuetable.h"
#include "gui/widgets/words.h"

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLocale>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace pipewright {

namespace {

QString flops(double value)
{
    constexpr int digits = 4; // as in durations
    const double unit = value > 0 ? std::pow(10.0, std::floor(std::log10(value)) - digits + 1) : 1;
    QString text = quantityText(formatFlops(std::round(value / unit) * unit));
    text.chop(2); // drop "/s": this is work, not a rate
    return text;
}

QString parametersText(std::int64_t parameters)
{
    return parameters >= 1'000'000 ? QObject::tr("%1\u00a0M").arg(double(parameters) / 1e6, 0, 'f', 1)
                                   : QLocale(QLocale::English).toString(qlonglong(parameters));
}

ValueCell words(const QString& text)
{
    return {text, false, {}, false, false};
}

/// The optimizer state that the stage's first replica keeps. `memory`: null without a prediction.
/// `largest`: of the table, whose unit all its sizes have.
ValueCell optimizerCell(const Design& design, const StageCosts& costs, const StageBytes* memory, Bytes largest)
{
    if (!memory || !design.schedule.sharesOptimizer())
        return {sizeAmong(costs.optimizerState, largest)};
    return {sizeAmong(memory->optimizer, largest), false,
            QObject::tr("A share of %1: each of %2 replicas keeps one")
                .arg(sizeAmong(costs.optimizerState, largest))
                .arg(design.schedule.replicas())};
}

/// Where group members run: the memory of the member with the highest peak in each group, once it is known.
MemoryBreakdown memoryOf(const Design& design, const Prediction& prediction, MemberPredictor& members)
{
    if (!runsMemberByMember(design))
        return memoryBreakdown(design, prediction);
    if (!prediction.memoryOfMembers)
        return {};
    const MemberPredictor::Members found = members.members(design);
    return memberBreakdown(design, found.prediction, found.stages->stages);
}

} // namespace

void ModelWindow::refresh()
{
    if (!isVisible())
        return;
    m_model->setDesign(m_document.design(), m_document.prediction());
    m_partition->setDesign(m_document.design());
    fillStages();
    fillLayers();
    fillDevices();
    fillLinks();
    fillGroups();
    const QString source = QString::fromStdString(m_document.design().costs.source);
    const bool formula = source.startsWith(QLatin1String("formula"));
    m_source->setText(
        formula
            ? tr("Times follow from these premises (%1).").arg(source)
            : tr("Times are %1: another rate does not change them, another cut shares them out by layer.").arg(source));
}

void ModelWindow::fillStages()
{
    const Design& design = m_document.design();
    MemoryBreakdown memory;
    if (m_document.prediction())
        memory = memoryOf(design, *m_document.prediction(), *m_document.memberPredictor());
    Bytes largest = 0;
    for (const StageCosts& costs : design.costs.stages)
        largest = std::max({largest, costs.parameters, costs.gradients, costs.optimizerState});
    for (const StageBytes& stage : memory.stages)
        largest = std::max(largest, stage.activations);
    std::vector<std::vector<ValueCell>> rows;
    for (std::size_t stage = 0; stage < design.costs.stages.size(); ++stage) {
        const StageCosts& costs = design.costs.stages[stage];
        const bool cut = stage < design.layersPerStage.size() && design.layersPerStage.size() > 1 && design.workload;
        const StageBytes* live = stage < memory.stages.size() ? &memory.stages[stage] : nullptr;
        rows.push_back({words(QString::number(stage)),
                        words(deviceLabel(design, design.schedule.deviceOfStage[stage])),
                        {stage < design.layersPerStage.size() ? QString::number(design.layersPerStage[stage])
                                                              : QStringLiteral("–"),
                         cut},
                        {durationText(costs.forward)},
                        {durationText(costs.inputGrad)},
                        {durationText(costs.weightGrad)},
                        {sizeAmong(costs.parameters, largest)},
                        {sizeAmong(costs.gradients, largest)},
                        optimizerCell(design, costs, live, largest),
                        {live ? tr("%1 (%2)").arg(sizeAmong(live->activations, largest)).arg(live->microbatches)
                              : QStringLiteral("–"),
                         false,
                         live ? tr("Saved activations of %1 microbatches at the fullest moment of its device")
                                    .arg(live->microbatches)
                              : QString()},
                        {QString::fromStdString(nameOf(design.schedule.recomputeOf(int(stage)))), true},
                        {design.schedule.offloads(int(stage)) ? tr("yes") : tr("no"), true}});
    }
    m_zero->setValue(design.schedule.zero, savedByShardedOptimizer(design));
    const std::vector<Recompute>& recompute = design.schedule.recompute;
    const bool alike = std::adjacent_find(recompute.begin(), recompute.end(), std::not_equal_to<>()) == recompute.end();
    const Recompute everywhere = recompute.empty() ? Recompute::None : recompute.front();
    for (QComboBox* combo : {m_recompute, &m_model->recompute()}) {
        const int found = alike ? combo->findData(QString::fromStdString(nameOf(everywhere))) : -1;
        combo->setCurrentIndex(found < 0 ? combo->count() - 1 : found);
    }
    m_stages->setRows(rows);
    m_stages->setMaximumHeight(m_stages->heightOfRows());
    std::vector<QString> names;
    for (const DeviceMemory& device : memory.devices)
        names.push_back(deviceLabel(design, device.device));
    for (MemoryBars* bars : {m_memory, m_modelMemory})
        bars->setDevices(memory.devices, names);
}

void ModelWindow::fillLayers()
{
    const Design& design = m_document.design();
    const auto savedOf = [](const Layer& layer) {
        Bytes saved = 0;
        for (const SavedTensor& tensor : layer.saved)
            saved += tensor.bytes();
        return saved;
    };
    std::vector<std::vector<ValueCell>> rows;
    if (design.workload) {
        Bytes largest = 0; // gives the unit
        for (const Layer& layer : design.workload->layers)
            largest = std::max({largest, savedOf(layer), layer.outputBytes});
        std::size_t stage = 0,
                    left = design.layersPerStage.empty() ? 0 : static_cast<std::size_t>(design.layersPerStage.front());
        for (const Layer& layer : design.workload->layers) {
            while (left == 0 && stage + 1 < design.layersPerStage.size())
                left = design.layersPerStage[++stage];
            if (left > 0)
                --left;
            const QString tied = layer.tiedTo.empty() ? QString()
                                                      : tr("%1 of them tied to %2")
                                                            .arg(parametersText(layer.sharedParameters),
                                                                 QString::fromStdString(layer.tiedTo));
            rows.push_back({words(QString::fromStdString(layer.name)),
                            {QString::number(stage)},
                            {flops(layer.forwardFlops)},
                            {flops(layer.inputGradFlops + layer.weightGradFlops)},
                            {parametersText(layer.parameters), false, tied},
                            {sizeAmong(savedOf(layer), largest)},
                            {sizeAmong(layer.outputBytes, largest)}});
        }
    }
    m_layers->setRows(rows);
}

void ModelWindow::fillDevices()
{
    const Design& design = m_document.design();
    const bool formula = QString::fromStdString(design.costs.source).startsWith(QLatin1String("formula"));
    const ProductType products = productsOf(design); // whose peak counts, and is shown
    std::vector<std::vector<ValueCell>> rows;
    for (std::size_t i = 0; i < design.cluster.devices.size(); ++i) {
        const DeviceSpec& spec = design.cluster.devices[i];
        const QString unused = !formula     ? tr("The times of this design do not come from it")
                               : spec.rates ? tr("Only for what the rates %1 do not know; a number that is typed takes "
                                                 "their place")
                                                  .arg(QString::fromStdString(spec.rates->name))
                                            : QString();
        const bool over = m_document.prediction() && i < m_document.prediction()->metrics.devices.size()
                          && spec.memory > 0 && m_document.prediction()->metrics.devices[i].peakBytes > spec.memory;
        rows.push_back({words(deviceLabel(design, static_cast<int>(i))),
                        {QString::fromStdString(spec.name), true, {}, false},
                        {spec.memory > 0 ? quantityText(exactSize(spec.memory)) : QString(), true,
                         over ? tr("The peak of this schedule is above it") : tr("Empty: not known"), true, over},
                        {quantityText(formatFlops(spec.peakOf(products))), true, unused},
                        {percentText(spec.efficiency), true, unused},
                        {quantityText(formatBandwidth(spec.memoryBandwidth)), true, unused}});
        const GpuShare* share = i < design.cluster.gpus.size() ? &design.cluster.gpus[i] : nullptr;
        rows.back().push_back({share ? QString::number(share->gpu) : QString(), true,
                               share ? tr("Empty: left open, for every device")
                                     : tr("Empty: left open. The first number is taken for every device")});
        rows.back().push_back(
            {share && share->multiprocessors > 0 ? QString::number(share->multiprocessors) : QString(), true,
             share ? tr("Empty: the whole GPU")
                   : tr("Empty: left open. The first number is taken for every device, on GPU 0")});
        rows.back().push_back({spec.halfRateWidth > 0 ? QString::number(spec.halfRateWidth) : QString(), true, unused});
    }
    m_devices->setRows(rows);
    describeMapping();
}

void ModelWindow::describeMapping()
{
    const Cluster& cluster = m_document.design().cluster;
    if (cluster.gpus.empty()) {
        m_mapping->setText(tr("Runs with CUDA are spread over the GPUs of the machine; devices that share one get "
                              "equal slices of its multiprocessors."));
        return;
    }
    struct Use {
        int whole = 0, slices = 0, multiprocessors = 0;
    };
    std::map<int, Use> uses;
    for (const GpuShare& share : cluster.gpus) {
        Use& use = uses[share.gpu];
        use.whole += share.multiprocessors == 0;
        use.slices += share.multiprocessors > 0;
        use.multiprocessors += share.multiprocessors;
    }
    QStringList parts;
    for (const auto& [gpu, use] : uses) {
        QStringList held;
        if (use.slices > 0)
            held << (use.slices == 1
                         ? tr("a slice of %1 multiprocessors").arg(use.multiprocessors)
                         : tr("%1 slices with %2 multiprocessors together").arg(use.slices).arg(use.multiprocessors));
        if (use.whole > 0)
            held << (use.whole == 1 ? tr("a device on all of it") : tr("%1 devices on all of it").arg(use.whole));
        parts << tr("GPU %1: %2").arg(gpu).arg(held.join(tr(" and ")));
    }
    m_mapping->setText(tr("Runs with CUDA use the machine's GPUs so: %1.").arg(parts.join(QStringLiteral("; "))));
}

void ModelWindow::fillLinks()
{
    const Design& design = m_document.design();
    const auto row = [](const QString& between, const LinkSpec& link) -> std::vector<ValueCell> {
        return {words(between),
                {QString::fromStdString(link.name), true, {}, false},
                {quantityText(exactDuration(link.latency)), true},
                {link.bandwidth > 0 ? quantityText(formatBandwidth(link.bandwidth)) : QString(), true,
                 QObject::tr("Empty: unlimited")}};
    };
    std::vector<std::vector<ValueCell>> rows{row(tr("any two devices"), design.cluster.link)};
    for (const auto& [pair, link] : design.cluster.linkOfPair)
        rows.push_back(row(tr("%1 → %2").arg(deviceLabel(design, pair.first), deviceLabel(design, pair.second)), link));
    m_links->setRows(rows);
    m_links->setMaximumHeight(m_links->heightOfRows());
    const Prediction* prediction = m_document.prediction();
    QStringList sentences;
    if (prediction)
        for (const std::string& sentence : {busSentence(prediction->program), streamSentence(prediction->program)})
            if (!sentence.empty())
                sentences << QString::fromStdString(sentence);
    m_buses->setText(sentences.isEmpty() ? tr("No two links share a bus: no transfer waits for those of other links.")
                                         : sentences.join(QStringLiteral("; ")));
    m_communication->setCurrentIndex(static_cast<int>(design.costs.communication));
}

void ModelWindow::fillGroups()
{
    const Design& design = m_document.design();
    m_groups->setEnabled(design.workload.has_value());
    m_nodes->setValue(design.cluster.nodes);
    const Parallelism parallel = design.workload ? design.workload->shape.parallel : Parallelism{};
    m_groups->setValue(parallel);
    const auto copies = parallel.devicesPerStage();
    QString text;
    if (!design.workload)
        text = tr("There is no model whose stages could be shared out.");
    else if (copies == 1)
        text = tr("Every device of the schedule is one device. Larger degrees make it a group, whose members work "
                  "alike; such a design is predicted and cannot be run here.");
    else
        text = tr("Every device of the schedule stands for %1 that work alike: %2 devices in all. Memory and times are "
                  "those of one. Such a design is predicted and cannot be run here.")
                   .arg(copies)
                   .arg(design.schedule.devices() * copies);
    if (const Nodes& nodes = design.cluster.nodes; nodes.devices > 0)
        text += QLatin1Char(' ')
                + tr("They stand in nodes of %1, tensor-parallel ones side by side and stages far apart; between nodes "
                     "are %2 network cards each (%3, %4).")
                      .arg(nodes.devices)
                      .arg(nodes.cards)
                      .arg(QString::fromStdString(nodes.network.name),
                           quantityText(formatBandwidth(nodes.network.bandwidth)));
    m_inGroups->setText(text);
}

} // namespace pipewright
