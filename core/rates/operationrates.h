// SPDX-License-Identifier: GPL-3.0-or-later
// Rates that operations reached on a device, by their shape. A table has the shapes of one operation in one layout and
// in one combination of types, each with its share of a peak rate and what it takes besides. A shape that was measured
// has its own rate. One between shapes that differ in a single dimension has theirs, log-linear in that dimension; any
// other the mean of the four nearest, by the inverse square of their distance, where distances are those of the
// logarithms. Far from all of them the nearest one's rate counts, and says so.
//
// A look-up finds a measured shape in O(log shapes); any other takes O(shapes).
#pragma once

#include "core/base/producttype.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

enum class RatedOperation : std::uint8_t {
    Product,           ///< rows × inner by inner × columns
    GroupedProduct,    ///< the same for each of so many experts, in one call
    AttentionForward,  ///< scores and the sum of values
    AttentionBackward, ///< five products where the forward has two; four where the scores are kept
    Memory,            ///< bound by bytes through memory
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Send,
};

/// As in files; empty behind the last one.
constexpr std::string_view nameOf(RatedOperation operation)
{
    switch (operation) {
    case RatedOperation::Product: return "product";
    case RatedOperation::GroupedProduct: return "grouped_product";
    case RatedOperation::AttentionForward: return "attention_forward";
    case RatedOperation::AttentionBackward: return "attention_backward";
    case RatedOperation::Memory: return "memory";
    case RatedOperation::AllReduce: return "all_reduce";
    case RatedOperation::AllGather: return "all_gather";
    case RatedOperation::ReduceScatter: return "reduce_scatter";
    case RatedOperation::AllToAll: return "all_to_all";
    case RatedOperation::Send: return "send";
    }
    return {};
}

/// Whether its work is FLOPs; else it is bytes.
bool countsFlops(RatedOperation operation);

inline constexpr int mostRateDimensions = 5;
using RateDimensions = std::array<double, mostRateDimensions>; ///< in the order of dimensionsOf(); behind them 0

/// The dimensions of an operation's shape, by name.
std::vector<std::string_view> dimensionsOf(RatedOperation operation);

enum class RateOrigin : std::uint8_t {
    Measured,     ///< of this very shape
    Interpolated, ///< between measured shapes
    Nearest,      ///< of a measured shape that is far away
    Formula,      ///< no rate is known: the device's efficiency, or its link's data
};
inline constexpr int rateOriginCount = 4;
constexpr std::string_view nameOf(RateOrigin origin) ///< empty behind the last one
{
    switch (origin) {
    case RateOrigin::Measured: return "measured";
    case RateOrigin::Interpolated: return "interpolated";
    case RateOrigin::Nearest: return "nearest";
    case RateOrigin::Formula: return "formula";
    }
    return {};
}

/// Seconds by where their rates come from.
using OriginSeconds = std::array<double, rateOriginCount>;

struct MeasuredRate {
    RateDimensions dims{};
    double share = 0;   ///< of the peak
    double latency = 0; ///< seconds, besides
    bool operator==(const MeasuredRate&) const = default;
};

struct RateTable {
    RatedOperation operation = RatedOperation::Product;
    /// Of a product, how its operands lie in memory: "TN", "NN", "NT", as its library has it. Of attention, its mask:
    /// "causal", "whole"; "stored" where the scores are kept, and products of whole matrices make them. Of what is
    /// bound by memory, what it is: "elementwise", "permutation", "loss". Else empty.
    std::string layout;
    std::string types;        ///< of operands, and behind a + of the sum that a product adds to: "bf16", "bf16+fp32"
    std::string link;         ///< of a collective: the link's name
    double peak = 0;          ///< FLOP/s of a product or an attention, else bytes/s
    std::vector<int> used;    ///< the dimensions that make a difference; of the others every size has this rate
    std::string source, when; ///< who measured it with what, and the date
    std::vector<MeasuredRate> shapes; ///< ascending by their dimensions, without duplicates; unused ones are 0
    bool operator==(const RateTable&) const = default;
};

/// What a look-up finds.
struct Rate {
    double perSecond = 0; ///< FLOP/s or bytes/s
    double latency = 0;   ///< seconds, besides
    RateOrigin origin = RateOrigin::Formula;
    double share = 1; ///< of the table's peak
    double seconds(double amount) const { return latency + amount / perSecond; }
    /// The same share of another peak: of a link whose bandwidth somebody has changed.
    Rate of(double peak) const { return {share * peak, latency, origin, share}; }
};

/// An operation whose rate is wanted.
struct RatedShape {
    RatedOperation operation = RatedOperation::Product;
    std::string_view layout, types, link;
    RateDimensions dims{};
    auto operator<=>(const RatedShape&) const = default;
};

/// Distances above this, in logarithms over all dimensions, are far: a factor of four in one of them.
inline constexpr double farInLogarithms = 1.3862943611198906;

/// Steps that were measured, and how far those predicted by these rates were from them, as shares of the measured.
struct CheckedRuns {
    int runs = 0;
    double median = 0, largest = 0;
    std::string of, where;                   ///< "Megatron-LM on B200"; the page that lists them
    ProductType products = ProductType::Own; ///< what their products multiplied
    bool operator==(const CheckedRuns&) const = default;
};

struct OperationRates {
    std::string name;   ///< of a preset, "b200-sxm", or the path of a file, which ends with .json
    std::string title;  ///< "B200 SXM, bf16"
    std::string origin; ///< who measured them, and the licence
    std::vector<RateTable> tables;
    std::vector<CheckedRuns> checked; ///< one for each type of products of which runs were compared

    /// Nothing: no run was compared.
    std::optional<CheckedRuns> checkedOf(ProductType products) const;

    /// Nothing where no table is of this operation, layout, types and link.
    std::optional<Rate> find(const RatedShape& shape) const;
    bool operator==(const OperationRates&) const = default;
};

/// Of one table. Precondition: it has a shape.
Rate rateIn(const RateTable& table, const RateDimensions& dims);

} // namespace pipewright
