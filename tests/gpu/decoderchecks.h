// SPDX-License-Identifier: GPL-3.0-or-later
// The GPU's kernels of today's decoders against their references: norms, rotary positions, grouped attention,
// activations, latent attention, values stored in bf16. Experts are in expertchecks.h.
#pragma once

#include "gpu/check.h"
#include "kernels/cuda/kernels.h"
#include "kernels/reference/decoder.h"

#include <memory>

namespace pipewright::test {

using kernels::GroupedAttentionShape;
using kernels::Store;

inline Values plus(Values values, double addend)
{
    for (double& value : values)
        value += addend;
    return values;
}

inline Values joined(std::initializer_list<Values> parts)
{
    Values all;
    for (const Values& part : parts)
        all.insert(all.end(), part.begin(), part.end());
    return all;
}

inline std::vector<float> readAll(std::initializer_list<const Floats*> parts)
{
    std::vector<float> all;
    for (const Floats* part : parts) {
        const std::vector<float> own = part->read();
        all.insert(all.end(), own.begin(), own.end());
    }
    return all;
}

/// Of narrow rows a block has fewer threads.
inline void checkRmsNorm(int columns, const std::string& of)
{
    namespace gpu = kernels::cuda;
    const int rows = small ? 40 : 300;
    const float epsilon = 1e-2f; // large enough to be seen
    const Values x = someValues(std::size_t(rows) * columns, 1, 2), gamma = someValues(columns, 2),
                 dy = someValues(x.size(), 3);
    Floats input(single(x)), scale(single(gamma)), grad(single(dy));
    const Values forward = reference::rmsNormForward(rows, columns, epsilon, x, gamma),
                 inputGrad = reference::rmsNormInputGrad(rows, columns, epsilon, x, gamma, dy);
    for (const Store store : {Store::Replace, Store::Add}) {
        const bool adds = store == Store::Add;
        const std::vector<float> before(x.size(), adds ? 0.25f : NAN);
        check(of + (adds ? " forward, added" : " forward"), plus(forward, adds ? 0.25 : 0), sumError, [&] {
            Floats y(before);
            gpu::run({}, kernels::RmsNormForward{rows, columns, epsilon, input.span(), scale.span(), y.span(), store});
            return y.read();
        });
        check(of + (adds ? " input grad, added" : " input grad, in place"), plus(inputGrad, adds ? 0.25 : 0), sumError,
              [&] {
                  Floats dx(adds ? before : single(dy));
                  gpu::run({}, kernels::RmsNormInputGrad{rows, columns, epsilon, input.span(), scale.span(),
                                                         adds ? grad.span() : dx.span(), dx.span(), store});
                  return dx.read();
              });
    }
    for (const int scratch : {rows, 16}) // all rows at once, or some
        check(of + " gamma grad", plus(reference::rmsNormWeightGrad(rows, columns, epsilon, x, dy), 0.5), sumError,
              [&] {
                  Floats dg(std::vector<float>(columns, 0.5f)), scales(scratch);
                  gpu::run({.rowScratch = scales.span()},
                           kernels::RmsNormWeightGrad{rows, columns, epsilon, input.span(), grad.span(), dg.span()});
                  return dg.read();
              });
}

inline void checkRotary()
{
    const int length = 9, heads = 3, headSize = 30, offset = 3, size = 24;
    const Values x = someValues(2 * length * heads * headSize, 1);
    for (const bool neighbours : {false, true})
        for (const bool backwards : {false, true}) {
            kernels::Rotate call{{10'000, kernels::RotaryScaling::Llama3, 8, 1, 4, 64},
                                 length,
                                 backwards ? 5000 : 0,
                                 heads,
                                 headSize,
                                 offset,
                                 size,
                                 neighbours,
                                 backwards,
                                 {}};
            check("rotary positions", reference::rotate(call, x), elementError, [&] {
                Floats values(single(x));
                call.values = values.span();
                kernels::cuda::run({}, call);
                return values.read();
            });
        }
    // More pairs than a launch takes.
    const int wide = 2 * 300;
    const Values y = someValues(std::size_t(4) * wide, 2);
    kernels::Rotate call{{10'000, kernels::RotaryScaling::None, 1, 1, 4, 0}, 4, 0, 1, wide, 0, wide, false, false, {}};
    check("rotary positions, wide", reference::rotate(call, y), elementError, [&] {
        Floats values(single(y));
        call.values = values.span();
        kernels::cuda::run({}, call);
        return values.read();
    });
}

/// As they are, or what bf16 can hold of them.
inline Values valuesFor(bool bf16, Values values)
{
    return bf16 ? Bf16Values(std::move(values)).values : values;
}

/// Whether this GPU has tensor cores for bf16.
inline bool multipliesBf16()
{
    int major = 0;
    require(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "look at the GPU");
    return major >= 8;
}

/// Forward and gradients of whole sequences.
inline void checkGroupedAttention(const std::string& name, const GroupedAttentionShape& shape, bool withSinks = false,
                                  bool bf16 = false)
{
    namespace gpu = kernels::cuda;
    const double limit = bf16 ? bf16AttentionError : sumError;
    const Values q = valuesFor(bf16, someValues(shape.queries(), 1, 3)),
                 k = valuesFor(bf16, someValues(shape.keys(), 2)), v = valuesFor(bf16, someValues(shape.values(), 3)),
                 dy = valuesFor(bf16, someValues(shape.outputs(), 4)),
                 s = withSinks ? someValues(shape.heads, 5, 2) : Values();
    Floats query(single(q)), key(single(k)), value(single(v)), grad(single(dy)), sinks(single(s)),
        logSums(shape.numbers()), output(shape.outputs());
    const std::span<float> given = withSinks ? sinks.span() : std::span<float>();
    const auto expected = reference::groupedAttentionForward(shape, q, k, v, s);
    const auto grads = reference::groupedAttentionInputGrad(shape, q, k, v, dy, s);
    check("attention, " + name, joined({expected.output, expected.logSums}), limit, [&] {
        gpu::run({},
                 kernels::GroupedAttentionForward{
                     shape, query.span(), key.span(), value.span(), logSums.span(), output.span(), {}, given, bf16});
        return readAll({&output, &logSums});
    });
    check("attention grads, " + name,
          joined({grads.query, grads.key, grads.value, plus(grads.sinks, withSinks ? 0.5 : 0)}), limit, [&] {
              Floats dq(q.size()), dk(k.size()), dv(v.size()), dots(shape.numbers()),
                  ds(std::vector<float>(s.size(), 0.5f));
              gpu::run({}, kernels::GroupedAttentionInputGrad{shape,
                                                              query.span(),
                                                              key.span(),
                                                              value.span(),
                                                              logSums.span(),
                                                              output.span(),
                                                              grad.span(),
                                                              dq.span(),
                                                              dk.span(),
                                                              dv.span(),
                                                              dots.span(),
                                                              {},
                                                              {},
                                                              given,
                                                              ds.span(),
                                                              bf16});
              return readAll({&dq, &dk, &dv, &ds});
          });
}

inline void checkGroupedAttentions()
{
    const auto shape = [](int length, int heads, int shared, int size, int valueSize) {
        return GroupedAttentionShape{.sequences = 2,
                                     .length = length,
                                     .heads = heads,
                                     .keyValueHeads = shared,
                                     .querySize = size,
                                     .valueSize = valueSize,
                                     .scale = float(1 / std::sqrt(size))};
    };
    checkGroupedAttention("grouped", shape(small ? 19 : 150, 6, 2, 33, 33));
    checkGroupedAttention("several tiles", shape(small ? 70 : 200, 2, 1, 5, 5));
    checkGroupedAttention("other values", shape(small ? 9 : 70, 2, 2, 192, 128));
    checkGroupedAttention("widest heads", shape(small ? 5 : 70, 1, 1, 256, 256));
    GroupedAttentionShape window = shape(small ? 140 : 300, 1, 1, 4, 3);
    window.window = 66;
    checkGroupedAttention("window", window);
    GroupedAttentionShape all = shape(small ? 66 : 90, 2, 1, 6, 6);
    all.causal = false;
    checkGroupedAttention("no mask", all);
    GroupedAttentionShape capped = shape(small ? 20 : 90, 4, 2, 6, 6);
    capped.softCap = 0.75f; // small enough to be felt
    checkGroupedAttention("capped, with sinks", capped, true);
    GroupedAttentionShape biased = shape(small ? 20 : 90, 6, 3, 6, 6);
    biased.biasedHeads = 12;
    biased.firstHead = 6;
    checkGroupedAttention("linear biases", biased);
    if (!multipliesBf16())
        return;
    checkGroupedAttention("linear biases, bf16", biased, false, true);
    checkGroupedAttention("grouped, bf16", shape(small ? 19 : 150, 6, 2, 33, 33), false, true);
    checkGroupedAttention("several tiles, bf16", shape(small ? 70 : 200, 2, 1, 64, 64), false, true);
    checkGroupedAttention("wide heads, bf16", shape(small ? 35 : 200, 2, 1, 128, 128), false, true);
    checkGroupedAttention("other values, bf16", shape(small ? 9 : 70, 2, 2, 192, 128), false, true);
    checkGroupedAttention("widest heads, bf16", shape(small ? 5 : 70, 1, 1, 256, 256), false, true);
    checkGroupedAttention("window, bf16", window, false, true);
    checkGroupedAttention("no mask, bf16", all, false, true);
    checkGroupedAttention("capped, with sinks, bf16", capped, true, true);
}

/// Sequences in pieces, forward from the first and back from the last, against the whole sequences.
inline void checkGroupedPieces(bool bf16)
{
    namespace gpu = kernels::cuda;
    constexpr int pieces = 3;
    const int length = small ? 5 : 70;
    GroupedAttentionShape shape{.sequences = 2,
                                .length = length,
                                .heads = 4,
                                .keyValueHeads = 2,
                                .querySize = 6,
                                .valueSize = 4,
                                .pieces = pieces,
                                .window = length + 2,
                                .scale = 0.4f};
    GroupedAttentionShape whole = shape;
    whole.length = pieces * length;
    whole.pieces = 1;
    const double limit = bf16 ? bf16AttentionError : sumError;
    const Values q = valuesFor(bf16, someValues(whole.queries(), 1, 2)),
                 k = valuesFor(bf16, someValues(whole.keys(), 2)), v = valuesFor(bf16, someValues(whole.values(), 3)),
                 dy = valuesFor(bf16, someValues(whole.outputs(), 4));
    const auto expected = reference::groupedAttentionForward(whole, q, k, v);
    const auto grads = reference::groupedAttentionInputGrad(whole, q, k, v, dy);
    const auto cut = [&](const Values& from, int piece) { // of both sequences
        const std::size_t share = from.size() / (2 * pieces);
        Values result;
        for (const int sequence : {0, 1}) {
            const auto begin = from.begin() + std::ptrdiff_t(std::size_t(sequence * pieces + piece) * share);
            result.insert(result.end(), begin, begin + std::ptrdiff_t(share));
        }
        return result;
    };
    struct Piece {
        Floats query, saved, grad, logSums, output; // keys, then values, as a stage would hold them
    };
    std::vector<std::unique_ptr<Piece>> at;
    std::vector<const float*> places;
    Values outputs, allGrads;
    for (int i = 0; i < pieces; ++i) {
        at.emplace_back(new Piece{Floats(single(cut(q, i))), Floats(single(joined({cut(k, i), cut(v, i)}))),
                                  Floats(single(cut(dy, i))), Floats(shape.numbers()), Floats(shape.outputs())});
        places.push_back(at.back()->saved.span().data());
        outputs = joined({outputs, cut(expected.output, i)});
        allGrads = joined({allGrads, cut(grads.query, i), cut(grads.key, i), cut(grads.value, i)});
    }
    const auto earlier = [&](int i) {
        return kernels::EarlierPieces{std::span(places).first(std::size_t(i)), 0, shape.keys()};
    };
    check(bf16 ? "attention of grouped pieces, bf16" : "attention of grouped pieces", outputs, limit, [&] {
        std::vector<float> all;
        for (int i = 0; i < pieces; ++i) {
            Piece& is = *at[std::size_t(i)];
            gpu::run({}, kernels::GroupedAttentionForward{shape,
                                                          is.query.span(),
                                                          is.saved.span().first(shape.keys()),
                                                          is.saved.span().last(shape.values()),
                                                          is.logSums.span(),
                                                          is.output.span(),
                                                          earlier(i),
                                                          {},
                                                          bf16});
            const std::vector<float> own = is.output.read();
            all.insert(all.end(), own.begin(), own.end());
        }
        return all;
    });
    check(bf16 ? "grads of grouped pieces, bf16" : "grads of grouped pieces", allGrads, limit, [&] {
        Floats owed(std::vector<float>(shape.sequenceGradient(), NAN)), dots(shape.numbers());
        std::vector<std::vector<float>> own(pieces);
        for (int i = pieces; i-- > 0;) {
            Piece& is = *at[std::size_t(i)];
            Floats dq(shape.queries()), dk(shape.keys()), dv(shape.values());
            gpu::run({}, kernels::GroupedAttentionInputGrad{shape,
                                                            is.query.span(),
                                                            is.saved.span().first(shape.keys()),
                                                            is.saved.span().last(shape.values()),
                                                            is.logSums.span(),
                                                            is.output.span(),
                                                            is.grad.span(),
                                                            dq.span(),
                                                            dk.span(),
                                                            dv.span(),
                                                            dots.span(),
                                                            earlier(i),
                                                            owed.span(),
                                                            {},
                                                            {},
                                                            bf16});
            own[std::size_t(i)] = readAll({&dq, &dk, &dv});
        }
        std::vector<float> all;
        for (const std::vector<float>& piece : own)
            all.insert(all.end(), piece.begin(), piece.end());
        return all;
    });
}

inline void checkActivations()
{
    namespace gpu = kernels::cuda;
    using kernels::ActivationKind;
    const std::size_t count = 300;
    for (const auto& each :
         {std::pair(ActivationKind::GeluTanh, "gelu, tanh form"), std::pair(ActivationKind::Gelu, "gelu"),
          std::pair(ActivationKind::Silu, "silu"), std::pair(ActivationKind::Tanh, "tanh"),
          std::pair(ActivationKind::ClampedSilu, "clamped silu")}) {
        const ActivationKind kind = each.first;
        const char* const name = each.second;
        const bool clamped = kind == ActivationKind::ClampedSilu;
        Values x = someValues(count, 1, clamped ? 10 : 4), u = someValues(count, 2, clamped ? 10 : 1);
        const Values dy = someValues(count, 3);
        for (Values* values : {&x, &u}) // not so near to a limit that a step of the differences crosses it
            for (double& value : *values)
                if (std::abs(std::abs(value) - 7) < 0.01)
                    value = 1;
        Floats input(single(x)), factor(single(u)), grad(single(dy));
        if (!clamped) {
            check(name, reference::activationForward(kind, x), sumError, [&] {
                Floats y(count);
                gpu::run({}, kernels::ActivationForward{kind, input.span(), y.span()});
                return y.read();
            });
            check(std::string(name) + " grad, in place", reference::activationInputGrad(kind, x, dy), sumError, [&] {
                Floats dx(single(dy));
                gpu::run({}, kernels::ActivationInputGrad{kind, input.span(), dx.span(), dx.span()});
                return dx.read();
            });
        }
        check(std::string("gated ") + name, reference::gatedForward(kind, x, u), sumError, [&] {
            Floats y(count);
            gpu::run({}, kernels::GatedForward{kind, input.span(), factor.span(), y.span()});
            return y.read();
        });
        const auto loss = [&](const Values& g, const Values& f) {
            return dot(reference::gatedForward(kind, g, f), dy);
        };
        check(std::string("gated ") + name + " grads",
              joined({finiteDifferences(x, [&](auto& at) { return loss(at, u); }),
                      finiteDifferences(u, [&](auto& at) { return loss(x, at); })}),
              sumError, [&] {
                  Floats dg(single(dy)), du(count); // in place
                  gpu::run({},
                           kernels::GatedInputGrad{kind, input.span(), factor.span(), dg.span(), dg.span(), du.span()});
                  return readAll({&dg, &du});
              });
    }
    const Values x = someValues(count, 1, 4), dy = someValues(count, 2);
    const Values capped = reference::softCap(3, x), slopes = reference::softCapGrad(3, capped, dy);
    check("soft cap and grad", joined({capped, slopes}), sumError, [&] {
        Floats values(single(x)), grad(single(dy));
        gpu::run({}, kernels::SoftCap{3, values.span()});
        gpu::run({}, kernels::SoftCapGrad{3, values.span(), grad.span()});
        return readAll({&values, &grad});
    });
}

inline void checkLatentKeys()
{
    const kernels::LatentKeys shape{3, 5, 4};
    const std::size_t tokens = 70, width = 9;
    const Values own = someValues(tokens * 3 * 5, 1), shared = someValues(tokens * 4, 2);
    Values keys, sums(shared.size());
    for (std::size_t row = 0; row < tokens * 3; ++row) {
        for (std::size_t i = 0; i < width; ++i)
            keys.push_back(i < 5 ? own[row * 5 + i] : shared[row / 3 * 4 + i - 5]);
        for (std::size_t i = 0; i < 4; ++i)
            sums[row / 3 * 4 + i] += shared[row / 3 * 4 + i];
    }
    Floats ofHeads(single(own)), ofAll(single(shared));
    check("keys of latents, and back", joined({keys, own, sums}), elementError, [&] {
        Floats joinedKeys(keys.size()), ownGrad(own.size()), sharedGrad(shared.size());
        kernels::cuda::run({}, kernels::JoinKeys{shape, ofHeads.span(), ofAll.span(), joinedKeys.span()});
        kernels::cuda::run({}, kernels::SplitKeysGrad{shape, joinedKeys.span(), ownGrad.span(), sharedGrad.span()});
        return readAll({&joinedKeys, &ownGrad, &sharedGrad});
    });
}

inline void checkBf16()
{
    // Halfway between two neighbours goes to the even one; what is no number stays none.
    const std::vector<float> given{1.0f, 1.00390625f, 1.01171875f, -3.14159f, 1e-40f, 3.4e38f, -0.0f};
    const Values rounded{1, 1, 1.015625, -3.140625, double(0x1.16p-133f), INFINITY, 0};
    const auto finite = [](auto values) { // an infinite one would decide over all others
        for (auto& value : values)
            value = std::isinf(value) ? 7 : value;
        return values;
    };
    check("rounded to bf16", finite(rounded), elementError, [&] {
        Floats values(given);
        kernels::cuda::run({}, kernels::RoundToBf16{values.span()});
        return finite(values.read());
    });
    check("to bf16 and back, added", finite(plus(rounded, 2)), elementError, [&] {
        Floats values(given), sum(std::vector<float>(given.size(), 2.0f));
        Memory<std::uint16_t> stored(given.size());
        kernels::cuda::run({}, kernels::Narrow{values.span(), stored.span()});
        kernels::cuda::run({}, kernels::Widen{stored.span(), sum.span(), Store::Add});
        return finite(sum.read());
    });
    check("bytes of pictures", {-1, 0.0039215686274509665, 1}, elementError, [&] {
        Memory<std::int32_t> bytes(std::vector<std::int32_t>{0, 128, 255});
        Floats values(3);
        kernels::cuda::run({}, kernels::FromBytes{bytes.span(), values.span()});
        return values.read();
    });
}

inline void checkDecoders()
{
    checkRmsNorm(small ? 270 : 300, "rms norm");
    checkRmsNorm(40, "rms norm, narrow");
    checkRotary();
    checkGroupedAttentions();
    checkGroupedPieces(false);
    if (multipliesBf16())
        checkGroupedPieces(true);
    checkActivations();
    checkLatentKeys();
    checkBf16();
}

} // namespace pipewright::test
