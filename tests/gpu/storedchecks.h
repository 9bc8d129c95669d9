// SPDX-License-Identifier: GPL-3.0-or-later
// Every kernel on bf16 as it lies in memory against itself on the same numbers in fp32: the same results to the bit,
// rounded once where they are stored.
#pragma once

#include "gpu/check.h"
#include "kernels/cuda/kernels.h"

#include <deque>
#include <string>
#include <type_traits>

namespace pipewright::test {

using kernels::StoredOperands;

/// The operands of a call, in memory of their own, as floats and as they are stored.
class BothWays {
public:
    BothWays(std::string name, const kernels::cuda::Context& context, StoredOperands stored)
        : m_name(std::move(name)), m_context(context), m_stored(stored)
    {
    }

    template<typename Call>
    void run(const Call& call)
    {
        Call wide = call, narrow = call;
        kernels::forOperands(wide, [&]<typename Element>(std::span<Element>& operand) {
            if constexpr (std::is_same_v<std::remove_const_t<Element>, float>)
                own(operand, !std::is_const_v<Element>);
        });
        std::size_t number = 0;
        kernels::forOperands(narrow, [&]<typename Element>(std::span<Element>& operand) {
            if constexpr (std::is_same_v<std::remove_const_t<Element>, float>) {
                if (!operand.empty())
                    operand = {isStored(number) ? reinterpret_cast<Element*>(m_operands[number].patterns.span().data())
                                                : m_operands[number].again.span().data(),
                               operand.size()};
                ++number;
            }
        });
        if constexpr (requires { call.bf16.left; }) {
            const auto patterns = [this](std::size_t of) { return m_operands[of].patterns.span().data(); };
            const std::size_t first = firstFactor(call);
            wide.bf16 = narrow.bf16 = {true, patterns(first), patterns(first + 1)};
        } else if constexpr (requires { call.bf16; }) {
            wide.bf16 = narrow.bf16 = true;
        }
        kernels::cuda::run(m_context, wide);
        kernels::cuda::Context ofStored = m_context;
        ofStored.stored = m_stored;
        kernels::cuda::run(ofStored, narrow);
        compare();
    }

private:
    struct Operand {
        Floats floats, again; ///< of the call on floats; of the other, where the operand is not stored
        Memory<std::uint16_t> patterns;
        bool isResult;

        Operand(const std::vector<float>& values, const std::vector<std::uint16_t>& stored, bool isResult)
            : floats(values), again(values), patterns(stored), isResult(isResult)
        {
        }
    };
    bool isStored(std::size_t number) const { return m_stored >> number & 1; }

    static std::size_t firstFactor(const kernels::LinearForward&) { return 3; }
    static std::size_t firstFactor(const kernels::LinearInputGrad&) { return 2; }
    static std::size_t firstFactor(const kernels::LinearWeightGrad&) { return 2; }
    static std::size_t firstFactor(const kernels::ExpertsForward&) { return 2; }
    static std::size_t firstFactor(const kernels::ExpertsInputGrad&) { return 1; }
    static std::size_t firstFactor(const kernels::ExpertsWeightGrad&) { return 0; }

    template<typename Element>
    void own(std::span<Element>& operand, bool isResult)
    {
        std::vector<float> values(operand.size());
        require(cudaMemcpy(values.data(), operand.data(), operand.size_bytes(), cudaMemcpyDeviceToHost), "read");
        const Bf16Values held(Values(values.begin(), values.end()));
        if (isStored(m_operands.size()))
            values.assign(held.values.begin(), held.values.end());
        Operand& made = m_operands.emplace_back(values, held.patterns, isResult);
        if (!operand.empty())
            operand = {made.floats.span().data(), operand.size()};
    }

    void compare()
    {
        std::size_t wrong = 0, results = 0;
        for (std::size_t number = 0; number < m_operands.size(); ++number) {
            const Operand& of = m_operands[number];
            if (!of.isResult)
                continue;
            const std::vector<float> expected = of.floats.read(), again = of.again.read();
            const std::vector<std::uint16_t> patterns = of.patterns.read();
            results += expected.size();
            for (std::size_t i = 0; i < expected.size(); ++i) {
                auto bits = std::bit_cast<std::uint32_t>(expected[i]);
                bits += 0x7fff + (bits >> 16 & 1);
                wrong += isStored(number)
                             ? patterns[i] != bits >> 16
                             : std::bit_cast<std::uint32_t>(again[i]) != std::bit_cast<std::uint32_t>(expected[i]);
            }
        }
        require(kernels::cuda::takeLaunchError(), m_name.c_str());
        failures += wrong > 0 || results == 0;
        std::printf("%-28s as it is stored: %zu of %zu results differ %s\n", m_name.c_str(), wrong, results,
                    wrong > 0 || results == 0 ? "WRONG" : "ok");
    }

    std::string m_name;
    kernels::cuda::Context m_context;
    StoredOperands m_stored;
    std::deque<Operand> m_operands;
};

/// `stored`: the first operands, so many, or these.
template<typename Call>
void checkStored(const std::string& name, const Call& call, StoredOperands stored,
                 const kernels::cuda::Context& context = {})
{
    BothWays(name, context, stored).run(call);
}

inline constexpr StoredOperands firstOperands(int count)
{
    return (StoredOperands{1} << count) - 1;
}

/// Rows of numbers, as many as are asked for, each other than the last ones.
class SomeFloats {
public:
    std::span<float> operator()(std::size_t count)
    {
        return m_all.emplace_back(single(someValues(count, ++m_seed, 2))).span();
    }

private:
    int m_seed = 0;
    std::deque<Floats> m_all;
};

inline void checkStoredRows(SomeFloats& some, const kernels::cuda::Context& context)
{
    constexpr int rows = 9, columns = 33;
    constexpr std::size_t all = rows * columns;
    for (const auto store : {kernels::Store::Replace, kernels::Store::Add}) {
        checkStored("RMS norm",
                    kernels::RmsNormForward{rows, columns, 1e-5f, some(all), some(columns), some(all), store},
                    firstOperands(3));
        checkStored(
            "RMS norm input grad",
            kernels::RmsNormInputGrad{rows, columns, 1e-5f, some(all), some(columns), some(all), some(all), store},
            firstOperands(4));
        checkStored(
            "layer norm input grad",
            kernels::LayerNormInputGrad{rows, columns, some(all), some(columns), some(all), some(all), 1e-5f, store},
            firstOperands(4));
    }
    checkStored("RMS norm weight grad",
                kernels::RmsNormWeightGrad{rows, columns, 1e-5f, some(all), some(all), some(columns)}, firstOperands(2),
                context);
    checkStored("layer norm",
                kernels::LayerNormForward{rows, columns, some(all), some(columns), some(columns), some(all)},
                firstOperands(4));
    checkStored("layer norm weight grad",
                kernels::LayerNormWeightGrad{rows, columns, some(all), some(all), some(columns), some(columns)},
                firstOperands(2), context);
    Memory<std::int32_t> tokens(std::vector<std::int32_t>{2, 0, 2, 4, 1, 2, 0, 3, 3}), targets(tokens.read());
    checkStored("embedding",
                kernels::EmbeddingForward{3, columns, tokens.span(), some(5 * columns), some(3 * columns), some(all)},
                firstOperands(3));
    checkStored(
        "embedding weight grad",
        kernels::EmbeddingWeightGrad{3, columns, tokens.span(), some(all), some(5 * columns), some(3 * columns)},
        firstOperands(1));
    checkStored("bag of features",
                kernels::FeatureBagForward{3, columns, tokens.span(), some(5 * columns), some(3 * columns)},
                firstOperands(2));
    checkStored("bag of features grad",
                kernels::FeatureBagWeightGrad{3, columns, tokens.span(), some(3 * columns), some(5 * columns)},
                firstOperands(1));
    checkStored("cross entropy grad",
                kernels::CrossEntropyInputGrad{rows, columns, some(all), targets.span(), 0.25f, some(all)},
                firstOperands(1));
    Memory<std::int32_t> bytes(std::vector<std::int32_t>{0, 255, 100, 7});
    checkStored("from bytes", kernels::FromBytes{bytes.span(), some(4)}, firstOperands(1));
}

inline void checkStoredElements(SomeFloats& some)
{
    constexpr std::size_t all = 300;
    checkStored("fill", kernels::Fill{some(all), 0.3f}, firstOperands(1));
    checkStored("add", kernels::Add{some(all), some(all)}, firstOperands(2));
    checkStored("add to sums", kernels::Add{some(all), some(all)}, 2);
    Floats quarters(std::vector<float>(all, 0.25f));
    checkStored("predicted from momentum", kernels::PredictMomentum{0.3f, some(all), some(all), some(all)},
                firstOperands(1));
    checkStored("predicted from RMSProp",
                kernels::PredictRmsProp{0.3f, 1e-6f, some(all), quarters.span(), some(all), some(all)},
                firstOperands(1));
    checkStored("predicted from Adam",
                kernels::PredictAdam{{}, 3, 0.3f, some(all), some(all), quarters.span(), some(all)}, firstOperands(1));
    for (const auto kind : {kernels::ActivationKind::GeluTanh, kernels::ActivationKind::Gelu,
                            kernels::ActivationKind::Silu, kernels::ActivationKind::Tanh}) {
        checkStored("activation", kernels::ActivationForward{kind, some(all), some(all)}, firstOperands(2));
        checkStored("activation grad", kernels::ActivationInputGrad{kind, some(all), some(all), some(all)},
                    firstOperands(3));
    }
    for (const auto kind : {kernels::ActivationKind::Silu, kernels::ActivationKind::ClampedSilu}) {
        checkStored("gate", kernels::GatedForward{kind, some(all), some(all), some(all)}, firstOperands(3));
        checkStored("gate grad", kernels::GatedInputGrad{kind, some(all), some(all), some(all), some(all), some(all)},
                    firstOperands(5));
    }
    checkStored("cap grad", kernels::SoftCapGrad{3.0f, some(all), some(all)}, firstOperands(1));
    checkStored(
        "rotary",
        kernels::Rotate{
            {1e4, kernels::RotaryScaling::None, 1, 1, 1, 1}, 5, 2, 3, 8, 2, 4, false, false, some(2 * 5 * 3 * 8)},
        firstOperands(1));
    const kernels::LatentKeys latent{3, 4, 2};
    checkStored("latent keys", kernels::JoinKeys{latent, some(5 * 3 * 4), some(5 * 2), some(5 * 3 * 6)},
                firstOperands(3));
    checkStored("latent keys grad", kernels::SplitKeysGrad{latent, some(5 * 3 * 6), some(5 * 3 * 4), some(5 * 2)},
                firstOperands(3));
}

/// Where operands do not begin at multiples of 16 bytes, an element at a time is done, to the same bits.
inline void checkUnaligned()
{
    constexpr std::size_t all = 61;
    const Bf16Values x(someValues(all, 1, 2)), y(someValues(all, 2, 2));
    std::vector<std::uint16_t> results[2];
    for (const std::size_t from : {std::size_t{0}, std::size_t{1}}) {
        Memory<std::uint16_t> gate(all + from), factor(all + from), output(all + from);
        const auto put = [from](Memory<std::uint16_t>& to, const std::vector<std::uint16_t>& values) {
            require(cudaMemcpy(to.span().data() + from, values.data(), 2 * all, cudaMemcpyHostToDevice), "write");
        };
        put(gate, x.patterns);
        put(factor, y.patterns);
        const auto floats = [from](Memory<std::uint16_t>& of) {
            return std::span<float>(reinterpret_cast<float*>(of.span().data() + from), all);
        };
        kernels::cuda::run({.stored = 7}, kernels::GatedForward{kernels::ActivationKind::Silu, floats(gate),
                                                                floats(factor), floats(output)});
        const std::vector<std::uint16_t> made = output.read();
        results[from].assign(made.begin() + std::ptrdiff_t(from), made.end());
    }
    const bool same = results[0] == results[1];
    failures += !same;
    std::printf("%-28s %s\n", "unaligned elements", same ? "ok" : "WRONG");
}

inline void checkStoredExperts(SomeFloats& some)
{
    constexpr int tokens = 5, experts = 3, each = 2, width = 20;
    constexpr std::size_t copies = tokens * each;
    const kernels::Router router{.experts = experts, .perToken = each};
    Memory<std::int32_t> choice(copies), row(copies), begin(experts + 1);
    const std::span<float> probabilities = some(tokens * experts), weight = some(copies);
    checkStored(
        "routing",
        kernels::RouteTokens{router, some(experts), probabilities, choice.span(), row.span(), weight, begin.span()},
        firstOperands(1));
    checkStored("routing grad",
                kernels::RouteTokensGrad{router, width, probabilities, choice.span(), row.span(), some(tokens * width),
                                         some(copies * width), some(tokens * experts)},
                firstOperands(3));
    checkStored("copies to experts",
                kernels::CopyToExperts{each, width, row.span(), weight, some(tokens * width), some(copies * width)},
                firstOperands(2));
    checkStored("sum of experts",
                kernels::SumOfExperts{each, width, row.span(), weight, some(copies * width), some(tokens * width),
                                      kernels::Store::Add},
                firstOperands(2));
    const kernels::ExpertsShape shape{experts, width, 7, 7 * width};
    checkStored("experts",
                kernels::ExpertsForward{shape, begin.span(), some(copies * width), some(experts * 7 * width),
                                        some(copies * 7), some(experts * 7), 7},
                firstOperands(4));
    checkStored("experts input grad",
                kernels::ExpertsInputGrad{shape, begin.span(), some(copies * 7), some(experts * 7 * width),
                                          some(copies * width), kernels::Store::Add},
                firstOperands(3));
    checkStored("experts weight grad",
                kernels::ExpertsWeightGrad{shape, begin.span(), some(copies * width), some(copies * 7),
                                           some(experts * 7 * width), some(experts * 7), 7},
                firstOperands(2));
}

inline void checkStoredAttention(SomeFloats& some, int size, int valueSize)
{
    const kernels::GroupedAttentionShape shape{.sequences = 2,
                                               .length = small ? 9 : 70,
                                               .heads = 4,
                                               .keyValueHeads = 2,
                                               .querySize = size,
                                               .valueSize = valueSize,
                                               .scale = 0.3f};
    const std::span<float> query = some(shape.queries()), key = some(shape.keys()), value = some(shape.values()),
                           sinks = some(4), logSums = some(shape.numbers()), output = some(shape.outputs());
    checkStored("attention", kernels::GroupedAttentionForward{shape, query, key, value, logSums, output, {}, sinks},
                firstOperands(4) | 1 << 5);
    checkStored("attention grads",
                kernels::GroupedAttentionInputGrad{shape,
                                                   query,
                                                   key,
                                                   value,
                                                   logSums,
                                                   output,
                                                   some(shape.outputs()),
                                                   some(shape.queries()),
                                                   some(shape.keys()),
                                                   some(shape.values()),
                                                   some(shape.numbers()),
                                                   {},
                                                   {},
                                                   sinks,
                                                   some(4)},
                firstOperands(8) | 1 << 11);
}

/// Products, whatever multiplies them.
inline void checkStoredProducts(kernels::cuda::Products& products, const std::string& name)
{
    SomeFloats some;
    const kernels::LinearShape shape{24, 16, 40};
    constexpr std::size_t x = 24 * 16, w = 40 * 16, y = 24 * 40;
    const kernels::cuda::Context context{.products = &products, .rowScratch = some(64)};
    for (const auto store : {kernels::Store::Replace, kernels::Store::Add}) {
        checkStored("linear, " + name, kernels::LinearForward{shape, some(x), some(w), {}, some(y), store}, 0b11001,
                    context);
        checkStored("linear input grad, " + name, kernels::LinearInputGrad{shape, some(y), some(w), some(x), store},
                    0b1101, context);
    }
    checkStored("linear to fp32, " + name, kernels::LinearForward{shape, some(x), some(w), some(40), some(y)}, 0b11010,
                context);
    checkStored("linear weight grad, " + name, kernels::LinearWeightGrad{shape, some(x), some(y), some(w), some(40)},
                0b1100, context);
}

inline void checkStoredOperands()
{
    SomeFloats some;
    const kernels::cuda::Context context{.rowScratch = some(64)};
    checkStoredRows(some, context);
    checkStoredElements(some);
    checkUnaligned();
    checkStoredExperts(some);
    for (const int size : {6, 33, 128, 192, 256})
        checkStoredAttention(some, size, size == 192 ? 128 : size);
}

} // namespace pipewright::test
