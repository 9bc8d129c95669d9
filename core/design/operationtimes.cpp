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

void add(double& pass, OriginSeconds& origins, double amount, const Rate& rate, int times = 1)
{
    if (amount <= 0 || rate.perSecond <= 0)
        return;
    const double seconds = rate.seconds(amount / times) * times;
    pass += seconds;
    origins[static_cast<std::size_t>(rate.origin)] += seconds;
}

} // namespace

OperationTimes::OperationTimes(const DeviceSpec& device, DataType type, int gradientBytes) : m_device(device)
{
    const bool narrow = gradientBytes < bytesOf(DataType::Fp32);
    m_type = type == DataType::Bf16 ? "bf16" : "fp32";
    m_summed = type == DataType::Fp32 ? "fp32+fp32" : narrow ? "bf16+bf16" : "bf16+fp32";
}

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

ComputedLayer OperationTimes::byRates(const Layer& layer) const
{
    ComputedLayer computed;
    for (const ProductSize& size : layer.products)
        addProduct(size, computed);
    for (const AttentionSize& size : layer.attentions)
        addAttention(size, computed);
    addMoved(layer.moved, computed);
    return computed;
}

Rate OperationTimes::find(const RatedShape& shape, double otherwise) const
{
    return m_device.rates->find(shape).value_or(Rate{otherwise});
}

void OperationTimes::addProduct(const ProductSize& size, ComputedLayer& computed) const
{
    const bool grouped = size.experts > 0;
    const auto groups = static_cast<double>(grouped ? size.experts : 1);
    const double rows = static_cast<double>(size.rows) / groups, flops = size.flops();
    const auto inner = static_cast<double>(size.inner), columns = static_cast<double>(size.columns);
    const double width = std::max(1.0, std::min(inner, columns));
    const double formula = m_device.peakFlops * m_device.efficiency * width / (width + m_device.halfRateWidth);
    const auto rate = [&](std::string_view layout, std::string_view types, double m, double k, double n) {
        return find({grouped ? RatedOperation::GroupedProduct : RatedOperation::Product,
                     layout,
                     types,
                     {},
                     grouped ? RateDimensions{groups, m, k, n} : RateDimensions{m, k, n}},
                    formula);
    };
    add(computed.seconds.forward, computed.origins.forward, flops, rate("TN", m_type, rows, inner, columns));
    if (size.inputGrad)
        add(computed.seconds.inputGrad, computed.origins.inputGrad, flops, rate("NN", m_type, rows, columns, inner));
    if (size.weightGrad)
        add(computed.seconds.weightGrad, computed.origins.weightGrad, flops,
            rate("NT", m_summed, columns, rows, inner));
}

// Members with a part of every sequence exchange heads for tokens, or have the keys of the others too: as much work as
// fewer heads of the whole length.
void OperationTimes::addAttention(const AttentionSize& size, ComputedLayer& computed) const
{
    const double share = static_cast<double>(size.queries) / static_cast<double>(size.keys);
    const RateDimensions dims{static_cast<double>(size.sequences * size.heads) * share,
                              static_cast<double>(size.sequences * size.keyValueHeads) * share,
                              static_cast<double>(size.querySize), static_cast<double>(size.valueSize),
                              static_cast<double>(size.keys)};
    const std::string_view mask = size.causal ? "causal" : "whole";
    const double formula = m_device.peakFlops * m_device.efficiency, flops = size.flops();
    const double before = computed.seconds.forward;
    add(computed.seconds.forward, computed.origins.forward, flops,
        find({RatedOperation::AttentionForward, mask, m_type, {}, dims}, formula));
    computed.attentionCore += computed.seconds.forward - before;
    add(computed.seconds.inputGrad, computed.origins.inputGrad, 2.5 * flops,
        find({RatedOperation::AttentionBackward, mask, m_type, {}, dims}, formula));
}

void OperationTimes::addMoved(const MovedByKind& moved, ComputedLayer& computed) const
{
    for (int i = 0; i < movementCount; ++i) {
        const Movements& of = moved[static_cast<std::size_t>(i)];
        const auto addPass = [&](double& pass, OriginSeconds& origins, const MovedBytes& bytes) {
            const double each = bytes.bytes / std::max(1, bytes.kernels);
            add(pass, origins, bytes.bytes,
                find({RatedOperation::Memory, nameOf(static_cast<Movement>(i)), {}, {}, {each}},
                     m_device.memoryBandwidth),
                std::max(1, bytes.kernels));
        };
        addPass(computed.seconds.forward, computed.origins.forward, of.forward);
        addPass(computed.seconds.inputGrad, computed.origins.inputGrad, of.inputGrad);
        addPass(computed.seconds.weightGrad, computed.origins.weightGrad, of.weightGrad);
    }
}

double OperationTimes::memoryRate() const
{
    if (!m_device.rates)
        return m_device.memoryBandwidth;
    return find({RatedOperation::Memory, nameOf(Movement::Elementwise), {}, {}, {}}, m_device.memoryBandwidth)
        .perSecond;
}

} // namespace pipewright
