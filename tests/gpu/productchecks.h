// SPDX-License-Identifier: GPL-3.0-or-later
// The GPU's matrix products against their references: linear layers and their gradients with fp32 factors, with factors
// that are stored as bf16, and with what goes with a product (biases, GELU, their gradients).
#pragma once

#include "gpu/check.h"
#include "kernels/cuda/kernels.h"
#include "kernels/reference/reference.h"

#include <string>

namespace pipewright::test {

inline void checkProducts(kernels::cuda::Products& products, const char* name, kernels::cuda::Precision precision,
                          double limit)
{
    const kernels::LinearShape shape{small ? 50 : 190, small ? 40 : 96, small ? 72 : 136};
    const auto outputs = std::size_t(shape.outputs), inputs = std::size_t(shape.inputs);
    const Values x = someValues(std::size_t(shape.rows) * inputs, 1), w = someValues(outputs * inputs, 2),
                 b = someValues(outputs, 3), dy = someValues(std::size_t(shape.rows) * outputs, 4);
    Floats input(single(x)), weight(single(w)), bias(single(b)), grad(single(dy));
    check(std::string("linear forward, ") + name, reference::linearForward(shape, x, w, b), limit, [&] {
        Floats y(dy.size());
        kernels::cuda::run({.precision = precision, .products = &products},
                           kernels::LinearForward{shape, input.span(), weight.span(), bias.span(), y.span()});
        return y.read();
    });
    check(std::string("linear input grad, ") + name, reference::linearInputGrad(shape, dy, w), limit, [&] {
        Floats dx(x.size());
        kernels::cuda::run({.precision = precision, .products = &products},
                           kernels::LinearInputGrad{shape, grad.span(), weight.span(), dx.span()});
        return dx.read();
    });
    const auto grads = reference::linearWeightGrad(shape, x, dy);
    for (const bool ofBias : {false, true})
        check((ofBias ? "linear bias grad, " : "linear weight grad, ") + std::string(name),
              ofBias ? grads.bias : grads.weight, ofBias ? sumError : limit, [&] {
                  Floats dw(w.size()), db(b.size());
                  kernels::cuda::run({.precision = precision, .products = &products},
                                     kernels::LinearWeightGrad{shape, input.span(), grad.span(), dw.span(), db.span()});
                  return ofBias ? db.read() : dw.read();
              });
}

/// Tensors are packed without gaps: factors and results begin anywhere.
inline void checkUnalignedProduct(kernels::cuda::Products& products, kernels::cuda::Precision precision, double limit)
{
    const kernels::LinearShape shape{96, 64, 72};
    const Values x = someValues(std::size_t(96) * 64, 1), w = someValues(std::size_t(72) * 64, 2);
    Floats input(x.size() + 1), weight(w.size() + 3), output(std::size_t(96) * 72 + 5);
    const std::vector<float> xs = single(x), ws = single(w);
    require(cudaMemcpy(input.span().data() + 1, xs.data(), xs.size() * sizeof(float), cudaMemcpyHostToDevice), "copy");
    require(cudaMemcpy(weight.span().data() + 3, ws.data(), ws.size() * sizeof(float), cudaMemcpyHostToDevice), "copy");
    check("linear forward, at odd places", reference::linearForward(shape, x, w, Values(72, 0.0)), limit, [&] {
        kernels::cuda::run({.precision = precision, .products = &products},
                           kernels::LinearForward{
                               shape, input.span().subspan(1), weight.span().subspan(3), {}, output.span().subspan(5)});
        std::vector<float> all = output.read();
        return std::vector<float>(all.begin() + 5, all.end());
    });
}

inline Values inOne(std::initializer_list<Values> parts)
{
    Values all;
    for (const Values& part : parts)
        all.insert(all.end(), part.begin(), part.end());
    return all;
}

/// A linear layer with GELU behind it, or one before it; and all of its gradients.
inline void checkFused(kernels::cuda::Products& products, const std::string& name, const kernels::LinearShape& shape,
                       bool stored)
{
    namespace gpu = kernels::cuda;
    const auto rows = std::size_t(shape.rows), inputs = std::size_t(shape.inputs), outputs = std::size_t(shape.outputs);
    const Bf16Values x(someValues(rows * inputs, 1)), w(someValues(outputs * inputs, 2)),
        dy(someValues(rows * outputs, 4));
    const Values b = someValues(outputs, 3), before = someValues(rows * inputs, 5, 2);
    // What is stored is not looked at anywhere else.
    const auto floats = [&](const Bf16Values& of) {
        return stored ? std::vector<float>(of.values.size(), NAN) : single(of.values);
    };
    Floats input(floats(x)), weight(floats(w)), grad(floats(dy)), bias(single(b)), activationInput(single(before)),
        scratch(outputs);
    Memory<std::uint16_t> storedInput(x.patterns), storedWeight(w.patterns), storedGrad(dy.patterns);
    const auto factors = [&](Memory<std::uint16_t>& left, Memory<std::uint16_t>& right) {
        return stored ? kernels::Bf16Factors{true, left.span().data(), right.span().data()} : kernels::Bf16Factors{};
    };
    const gpu::Context context{.products = &products, .rowScratch = scratch.span()};
    for (const bool biased : {true, false}) {
        const Values output = reference::linearForward(shape, x.values, w.values, biased ? b : Values(outputs, 0.0));
        const std::span<float> shift = biased ? bias.span() : std::span<float>();
        check("linear and gelu, " + name, inOne({output, reference::geluForward(output)}), sumError, [&] {
            Floats y(rows * outputs), activated(rows * outputs);
            gpu::run(context, kernels::LinearForward{shape, input.span(), weight.span(), shift, y.span(),
                                                     kernels::Store::Replace, activated.span(),
                                                     factors(storedInput, storedWeight)});
            std::vector<float> all = y.read(), second = activated.read();
            all.insert(all.end(), second.begin(), second.end());
            return all;
        });
        Values added = output;
        for (double& value : added)
            value += 0.25;
        check("linear, added, " + name, added, sumError, [&] {
            Floats y(std::vector<float>(rows * outputs, 0.25f));
            gpu::run(context, kernels::LinearForward{shape,
                                                     input.span(),
                                                     weight.span(),
                                                     shift,
                                                     y.span(),
                                                     kernels::Store::Add,
                                                     {},
                                                     factors(storedInput, storedWeight)});
            return y.read();
        });
    }
    check("input grad and gelu's, " + name,
          reference::geluInputGrad(before, reference::linearInputGrad(shape, dy.values, w.values)), sumError, [&] {
              Floats dx(rows * inputs);
              gpu::run(context,
                       kernels::LinearInputGrad{shape, grad.span(), weight.span(), dx.span(), kernels::Store::Replace,
                                                activationInput.span(), factors(storedGrad, storedWeight)});
              return dx.read();
          });
    const auto grads = reference::linearWeightGrad(shape, x.values, dy.values);
    Values sums = inOne({grads.weight, grads.bias});
    for (double& value : sums)
        value += 0.5;
    check("weight and bias grad, " + name, sums, sumError, [&] {
        Floats dw(std::vector<float>(outputs * inputs, 0.5f)), db(std::vector<float>(outputs, 0.5f));
        gpu::run(context, kernels::LinearWeightGrad{shape, input.span(), grad.span(), dw.span(), db.span(),
                                                    factors(storedInput, storedGrad)});
        std::vector<float> all = dw.read(), second = db.read();
        all.insert(all.end(), second.begin(), second.end());
        return all;
    });
}

/// The second with outputs for which GELU cannot go with the product.
inline void checkEpilogues(kernels::cuda::Products& products, const std::string& name)
{
    checkFused(products, name, {small ? 24 : 190, small ? 40 : 96, small ? 72 : 136}, false);
    checkFused(products, name + ", odd", {small ? 24 : 190, small ? 20 : 84, small ? 36 : 100}, false);
    if (const std::string note = products.takeNote(); !note.empty())
        std::printf("note: %s\n", note.c_str());
}

inline void checkStoredFactors(kernels::cuda::Products& products, const std::string& name)
{
    checkFused(products, name, {small ? 24 : 190, small ? 40 : 96, small ? 72 : 136}, true);
    checkFused(products, name + ", odd", {small ? 23 : 189, small ? 19 : 83, small ? 35 : 99}, true);
}

} // namespace pipewright::test
