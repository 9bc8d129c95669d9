// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/design/ratedwork.h"

#include <algorithm>
#include <set>

namespace pipewright {

namespace {

struct Types {
    std::string_view product, summed; ///< "bf16", "bf16+fp32"
};

Types narrowTypes(ProductType products)
{
    switch (products) {
    case ProductType::Own: break;
    case ProductType::Fp8: return {"fp8", "fp8+fp32"};
    case ProductType::Nvfp4: return {"nvfp4", "nvfp4+fp32"};
    }
    return {};
}

Types ownTypes(DataType type, int gradientBytes)
{
    const bool narrow = gradientBytes < bytesOf(DataType::Fp32);
    switch (type) {
    case DataType::Fp32: return {"fp32", "fp32+fp32"};
    case DataType::Bf16: return {"bf16", narrow ? "bf16+bf16" : "bf16+fp32"};
    }
    return {};
}

void addProduct(const ProductSize& size, const Types& types, std::vector<RatedWork>& work)
{
    const bool grouped = size.experts > 0;
    const auto groups = static_cast<double>(grouped ? size.experts : 1);
    const double rows = static_cast<double>(size.rows) / groups;
    const auto inner = static_cast<double>(size.inner), columns = static_cast<double>(size.columns);
    const auto add = [&](Op pass, std::string_view layout, std::string_view of, double m, double k, double n) {
        RatedShape shape{grouped ? RatedOperation::GroupedProduct : RatedOperation::Product, layout, of, {}, {m, k, n}};
        if (grouped)
            shape.dims = {groups, m, k, n};
        work.push_back({shape, size.flops(), 1, pass});
    };
    add(Op::F, "TN", types.product, rows, inner, columns);
    if (size.inputGrad)
        add(Op::I, "NN", types.product, rows, columns, inner);
    if (size.weightGrad)
        add(Op::W, "NT", types.summed, columns, rows, inner);
}

// Members with a part of every sequence exchange heads for tokens, or have the keys of the others too: as much work as
// fewer heads of the whole length.
void addAttention(const AttentionSize& size, const Types& types, std::vector<RatedWork>& work)
{
    const double share = static_cast<double>(size.queries) / static_cast<double>(size.keys);
    const RateDimensions dims{static_cast<double>(size.sequences * size.heads) * share,
                              static_cast<double>(size.sequences * size.keyValueHeads) * share,
                              static_cast<double>(size.querySize), static_cast<double>(size.valueSize),
                              static_cast<double>(size.keys)};
    const std::string_view layout = size.storesScores ? "stored" : size.causal ? "causal" : "whole";
    work.push_back({{RatedOperation::AttentionForward, layout, types.product, {}, dims}, size.flops(), 1, Op::F});
    work.push_back(
        {{RatedOperation::AttentionBackward, layout, types.product, {}, dims}, size.backwardFlops(), 1, Op::I});
}

void addMoved(const MovedByKind& moved, std::vector<RatedWork>& work)
{
    for (int i = 0; i < movementCount; ++i) {
        const Movements& of = moved[static_cast<std::size_t>(i)];
        const auto addPass = [&](Op pass, const MovedBytes& bytes) {
            const int kernels = std::max(1, bytes.kernels);
            if (bytes.bytes > 0)
                work.push_back(
                    {{RatedOperation::Memory, nameOf(static_cast<Movement>(i)), {}, {}, {bytes.bytes / kernels}},
                     bytes.bytes,
                     kernels,
                     pass});
        };
        addPass(Op::F, of.forward);
        addPass(Op::I, of.inputGrad);
        addPass(Op::W, of.weightGrad);
    }
}

} // namespace

NumberTypes typesOf(const Workload& workload)
{
    return {workload.shape.dataType, workload.shape.products, workload.state.gradient};
}

std::vector<RatedWork> ratedWork(const Layer& layer, const NumberTypes& numbers)
{
    const Types types = ownTypes(numbers.own, numbers.gradientBytes), narrow = narrowTypes(numbers.products);
    std::vector<RatedWork> work;
    for (const ProductSize& size : layer.products)
        addProduct(size, size.narrow ? narrow : types, work);
    for (const AttentionSize& size : layer.attentions)
        addAttention(size, types, work);
    addMoved(layer.moved, work);
    return work;
}

std::vector<RatedShape> ratedShapesOf(const Design& design)
{
    std::set<RatedShape> shapes;
    if (design.workload)
        for (const Layer& layer : design.workload->layers)
            for (const RatedWork& work : ratedWork(layer, typesOf(*design.workload)))
                shapes.insert(work.shape);
    return {shapes.begin(), shapes.end()};
}

std::vector<RatedShape> ratedGrid(DataType type, int gradientBytes)
{
    std::vector<RatedShape> shapes;
    const Types types = ownTypes(type, gradientBytes);
    for (const double rows : {128., 1024., 8192.})
        for (const double inner : {128., 512., 2048., 8192.})
            for (const double columns : {128., 512., 2048., 8192.}) {
                shapes.push_back({RatedOperation::Product, "TN", types.product, {}, {rows, inner, columns}});
                shapes.push_back({RatedOperation::Product, "NN", types.product, {}, {rows, inner, columns}});
                shapes.push_back({RatedOperation::Product, "NT", types.summed, {}, {inner, rows, columns}});
            }
    for (const double heads : {4., 32.})
        for (const double size : {32., 128.})
            for (const double length : {128., 1024., 8192.})
                for (const RatedOperation pass : {RatedOperation::AttentionForward, RatedOperation::AttentionBackward})
                    shapes.push_back({pass, "causal", types.product, {}, {heads, heads, size, size, length}});
    for (const Movement movement : {Movement::Elementwise, Movement::Loss})
        for (double bytes = 1 << 16; bytes <= 1 << 30; bytes *= 8)
            shapes.push_back({RatedOperation::Memory, nameOf(movement), {}, {}, {bytes}});
    std::sort(shapes.begin(), shapes.end());
    return shapes;
}

} // namespace pipewright
