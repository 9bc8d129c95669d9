// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/familyestimates.h"

#include "core/design/redesign.h"

#include <algorithm>

namespace pipewright {

FamilyEstimates::FamilyEstimates(QObject* parent) : QObject(parent)
{
    m_worker.setMaxThreadCount(1);
}

FamilyEstimates::~FamilyEstimates()
{
    ++m_generation;
    m_worker.waitForDone();
}

FamilyEstimate estimateOf(const Design& design, const Prediction& prediction)
{
    const Metrics& metrics = prediction.metrics;
    FamilyEstimate result;
    result.possible = true;
    result.bubble = metrics.rateMakespan;
    result.makespan = metrics.makespan;
    for (const DeviceMetrics& device : metrics.devices) {
        result.activations = std::max(result.activations, device.peakActivations);
        result.peakBytes = std::max(*result.peakBytes, device.peakBytes);
    }
    if (isMemoryPending(design, prediction))
        result.peakBytes.reset();
    return result;
}

FamilyEstimate FamilyEstimates::estimate(const Design& base, std::size_t family, MemberPredictor& members,
                                         const std::function<bool()>& stop)
{
    FamilyEstimate result;
    result.family = family;
    try {
        const Design design = withFamily(base, families()[family], {}, stop);
        if (stop && stop())
            return result;
        result = estimateOf(design, members.predictPlaced(design, MemberPredictor::Patience::Any));
        result.family = family;
    } catch (const Error& error) {
        result.reason = QString::fromUtf8(error.what());
    }
    return result;
}

void FamilyEstimates::request(const Design& base, const MemberPredictor& members)
{
    Design key = base;
    key.name.clear();
    key.schedule.family.clear();
    key.schedule.pins.clear();
    for (std::vector<Block>& order : key.schedule.order)
        order.clear();
    if (m_generation > 0 && key == m_last)
        return;
    m_last = std::move(key);
    const int generation = ++m_generation;
    Q_EMIT started();
    m_worker.start([this, base, generation, own = members.another()] {
        for (std::size_t family = 0; family < families().size(); ++family) {
            const auto outdated = [this, generation] { return m_generation != generation; };
            if (outdated())
                return;
            const FamilyEstimate result = estimate(base, family, *own, outdated);
            QMetaObject::invokeMethod(
                this,
                [this, result, generation] {
                    if (m_generation == generation)
                        Q_EMIT ready(result);
                },
                Qt::QueuedConnection);
        }
    });
}

void FamilyEstimates::drop()
{
    m_last = Design();
    ++m_generation;
    Q_EMIT started();
}

} // namespace pipewright

#include "moc_familyestimates.cpp"
