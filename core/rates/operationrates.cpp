// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/rates/operationrates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace pipewright {

namespace {

/// The mean of logarithms, each with a weight.
class LogMean {
public:
    void add(double weight, double share, double latency)
    {
        m_weights += weight;
        m_share += weight * std::log(share);
        m_latency += weight * latency;
    }
    bool any() const { return m_weights > 0; }
    Rate rate(double peak, RateOrigin origin) const
    {
        const double share = std::exp(m_share / m_weights);
        return {peak * share, m_latency / m_weights, origin, share};
    }

private:
    double m_weights = 0, m_share = 0, m_latency = 0;
};

double distance(const RateDimensions& a, const RateDimensions& b, std::span<const int> used)
{
    double sum = 0;
    for (const int d : used) {
        const double apart = std::log(a[d] / b[d]);
        sum += apart * apart;
    }
    return std::sqrt(sum);
}

bool alikeBut(int except, const RateDimensions& a, const RateDimensions& b, std::span<const int> used)
{
    return std::all_of(used.begin(), used.end(), [&](int d) { return d == except || a[d] == b[d]; });
}

/// Between two shapes that differ from this one in a single dimension; of several such pairs, the closer ones count
/// more.
LogMean between(const RateTable& table, const RateDimensions& dims)
{
    LogMean mean;
    for (const int d : table.used) {
        const MeasuredRate *below = nullptr, *above = nullptr;
        for (const MeasuredRate& shape : table.shapes) {
            if (!alikeBut(d, shape.dims, dims, table.used))
                continue;
            if (shape.dims[d] < dims[d] && (below == nullptr || shape.dims[d] > below->dims[d]))
                below = &shape;
            if (shape.dims[d] > dims[d] && (above == nullptr || shape.dims[d] < above->dims[d]))
                above = &shape;
        }
        if (below == nullptr || above == nullptr)
            continue;
        const double gap = std::log(above->dims[d] / below->dims[d]);
        const double toAbove = std::log(dims[d] / below->dims[d]) / gap;
        mean.add((1 - toAbove) / gap, below->share, below->latency);
        mean.add(toAbove / gap, above->share, above->latency);
    }
    return mean;
}

} // namespace

bool countsFlops(RatedOperation operation)
{
    return operation == RatedOperation::Product || operation == RatedOperation::GroupedProduct
           || operation == RatedOperation::AttentionForward || operation == RatedOperation::AttentionBackward;
}

std::vector<std::string_view> dimensionsOf(RatedOperation operation)
{
    switch (operation) {
    case RatedOperation::Product: return {"rows", "inner", "columns"};
    case RatedOperation::GroupedProduct: return {"experts", "rows", "inner", "columns"};
    case RatedOperation::AttentionForward:
    case RatedOperation::AttentionBackward: return {"heads", "key_value_heads", "query_size", "value_size", "length"};
    case RatedOperation::Memory: return {"bytes"};
    case RatedOperation::AllReduce:
    case RatedOperation::AllGather:
    case RatedOperation::ReduceScatter:
    case RatedOperation::AllToAll:
    case RatedOperation::Send: return {"members", "bytes"};
    }
    return {};
}

Rate rateIn(const RateTable& table, const RateDimensions& dims)
{
    RateDimensions wanted{};
    for (const int d : table.used)
        wanted[d] = std::max(dims[d], 1.0);
    const auto found = std::lower_bound(table.shapes.begin(), table.shapes.end(), wanted,
                                        [](const MeasuredRate& a, const RateDimensions& b) { return a.dims < b; });
    if (found != table.shapes.end() && found->dims == wanted)
        return {table.peak * found->share, found->latency,
                table.used.empty() ? RateOrigin::Interpolated : RateOrigin::Measured, found->share};
    struct Near {
        double away = std::numeric_limits<double>::max();
        const MeasuredRate* shape = nullptr;
    };
    std::array<Near, 4> nearest;
    for (const MeasuredRate& shape : table.shapes) {
        Near next{distance(shape.dims, wanted, table.used), &shape};
        for (Near& kept : nearest)
            if (next.away < kept.away)
                std::swap(kept, next);
    }
    if (nearest[0].away > farInLogarithms)
        return {table.peak * nearest[0].shape->share, nearest[0].shape->latency, RateOrigin::Nearest,
                nearest[0].shape->share};
    LogMean mean = between(table, wanted);
    if (!mean.any())
        for (const Near& near : nearest)
            if (near.shape != nullptr)
                mean.add(1 / (near.away * near.away), near.shape->share, near.shape->latency);
    return mean.rate(table.peak, RateOrigin::Interpolated);
}

std::optional<CheckedRuns> OperationRates::checkedOf(ProductType products) const
{
    for (const CheckedRuns& runs : checked)
        if (runs.products == products)
            return runs;
    return std::nullopt;
}

std::optional<Rate> OperationRates::find(const RatedShape& shape) const
{
    for (const RateTable& table : tables)
        if (table.operation == shape.operation && table.layout == shape.layout && table.types == shape.types
            && table.link == shape.link)
            return rateIn(table, shape.dims);
    return std::nullopt;
}

} // namespace pipewright
