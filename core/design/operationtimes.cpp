// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/design/operationtimes.h"

#include "core/model/recomputedtensors.h"
#include "core/rates/operationrates.h"

#include <algorithm>

namespace pipewright {

namespace {

/// Gathering rows is traffic, not arithmetic.
bool gathersRows(LayerKind kind)
{
    switch (kind) {
    case LayerKind::Embedding: return true;
    case LayerKind::Transformer:
    case LayerKind::Mlp:
    case LayerKind::Head:
    case LayerKind::Other: return false;
    }
    return false;
}

/// FLOPs of a product, and those that its narrow side costs besides.
double widened(const ProductSize& product, double halfRateWidth)
{
    return product.flops()
           * (1
              + halfRateWidth
                    / static_cast<double>(std::max<std::int64_t>(1, std::min(product.inner, product.columns))));
}

constexpr double updatedBytes = 1 << 30;

} // namespace

OperationTimes::OperationTimes(const DeviceSpec& device, const NumberTypes& types) : m_device(device), m_types(types) {}

const ComputedLayer& OperationTimes::of(const Layer& layer)
{
    if (!m_device.rates) {
        m_last = byFormula(layer);
        return m_last;
    }
    for (const Known& known : m_known)
        if (known.kind == layer.kind && known.products == layer.products && known.attentions == layer.attentions
            && known.moved == layer.moved)
            return known.computed;
    m_known.push_back({layer.kind, layer.products, layer.attentions, layer.moved, byRates(layer)});
    return m_known.back().computed;
}

ComputedLayer OperationTimes::byFormula(const Layer& layer) const
{
    const DeviceSpec& device = m_device;
    const double rate = device.peakFlops * device.efficiency;
    ComputedLayer computed;
    computed.seconds = {(layer.forwardFlops + device.halfRateWidth * layer.forwardFlopsPerWidth) / rate,
                        (layer.inputGradFlops + device.halfRateWidth * layer.inputGradFlopsPerWidth) / rate,
                        (layer.weightGradFlops + device.halfRateWidth * layer.weightGradFlopsPerWidth) / rate};
    if (m_types.products != ProductType::Own) {
        const double narrowRate = device.peakOf(m_types.products) * device.efficiency;
        for (const ProductSize& product : layer.products) {
            if (!product.narrow)
                continue;
            const double less = widened(product, device.halfRateWidth) * (1 / rate - 1 / narrowRate);
            computed.seconds.forward -= less;
            computed.seconds.inputGrad -= product.inputGrad ? less : 0;
            computed.seconds.weightGrad -= product.weightGrad ? less : 0;
        }
    }
    // One share of the peak covers what all layers move between products, but not casts and tokens sorted by expert.
    for (const Movement kind : {Movement::Cast, Movement::Permutation})
        if (const Movements& moved = layer.moved[static_cast<std::size_t>(kind)]; device.memoryBandwidth > 0) {
            computed.seconds.forward += moved.forward.bytes / device.memoryBandwidth;
            computed.seconds.inputGrad += moved.inputGrad.bytes / device.memoryBandwidth;
            computed.seconds.weightGrad += moved.weightGrad.bytes / device.memoryBandwidth;
        }
    if (gathersRows(layer.kind) && device.memoryBandwidth > 0) { // read and write the output, and the same back
        const double traffic = 2.0 * static_cast<double>(layer.outputBytes) / device.memoryBandwidth;
        computed.seconds.forward += traffic;
        computed.seconds.weightGrad += traffic;
    }
    computed.attentionCore = attentionCoreFlops(layer) / rate;
    constexpr auto formula = static_cast<std::size_t>(RateOrigin::Formula);
    computed.origins.forward[formula] = computed.seconds.forward;
    computed.origins.inputGrad[formula] = computed.seconds.inputGrad;
    computed.origins.weightGrad[formula] = computed.seconds.weightGrad;
    return computed;
}

double OperationTimes::peakOf(const RatedShape& shape) const
{
    if (!countsFlops(shape.operation))
        return m_device.memoryBandwidth;
    const bool narrow = m_types.products != ProductType::Own && shape.types.starts_with(nameOf(m_types.products));
    return m_device.peakOf(narrow ? m_types.products : ProductType::Own);
}

/// What counts where no table knows the operation.
double OperationTimes::formulaRate(const RatedShape& shape) const
{
    if (!countsFlops(shape.operation))
        return peakOf(shape);
    const double rate = peakOf(shape) * m_device.efficiency;
    const bool grouped = shape.operation == RatedOperation::GroupedProduct;
    if (!grouped && shape.operation != RatedOperation::Product)
        return rate;
    const std::size_t first = grouped ? 1 : 0;   // a half-rate width is of the weight's narrower side
    const bool ofWeights = shape.layout == "NT"; // whose result has the weight's sides
    const double width = std::max(1.0, std::min(shape.dims[first + (ofWeights ? 0 : 1)], shape.dims[first + 2]));
    return rate * width / (width + m_device.halfRateWidth);
}

Rate OperationTimes::rateOf(const RatedShape& shape) const
{
    const std::optional<Rate> rate = m_device.rates->find(shape);
    if (!rate)
        return Rate{formulaRate(shape)};
    const double peak = peakOf(shape); // that of a faster device, or of one with another memory, is reached as far
    return peak > 0 ? rate->of(peak) : *rate;
}

ComputedLayer OperationTimes::byRates(const Layer& layer) const
{
    ComputedLayer computed;
    for (const RatedWork& work : ratedWork(layer, m_types)) {
        const Rate rate = rateOf(work.shape);
        if (work.amount <= 0 || rate.perSecond <= 0)
            continue;
        const double seconds = rate.seconds(work.amount / work.times) * work.times;
        const auto origin = static_cast<std::size_t>(rate.origin);
        double& pass = work.pass == Op::F   ? computed.seconds.forward
                       : work.pass == Op::I ? computed.seconds.inputGrad
                                            : computed.seconds.weightGrad;
        OriginSeconds& origins = work.pass == Op::F   ? computed.origins.forward
                                 : work.pass == Op::I ? computed.origins.inputGrad
                                                      : computed.origins.weightGrad;
        pass += seconds;
        origins[origin] += seconds;
        if (work.shape.operation == RatedOperation::AttentionForward)
            computed.attentionCore += seconds;
    }
    return computed;
}

double OperationTimes::memoryRate() const
{
    if (!m_device.rates)
        return m_device.memoryBandwidth;
    // An update goes over all of a stage's state: as large a kernel as any.
    return rateOf({RatedOperation::Memory, nameOf(Movement::Elementwise), {}, {}, {updatedBytes}}).perSecond;
}

} // namespace pipewright
