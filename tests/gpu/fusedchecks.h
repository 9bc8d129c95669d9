// SPDX-License-Identifier: GPL-3.0-or-later
// Attention by cuDNN against the reference in double precision, and beside this program's own kernels: both may do the
// gradients of what the other did. Where the library is not found that is said, and nothing is checked.
#pragma once

#include "executor/cuda/loader.h"
#include "gpu/decoderchecks.h"
#include "kernels/cuda/kernels.h"
#include "kernels/reference/decoder.h"

#include <optional>

namespace pipewright::test {

namespace gpu = kernels::cuda;

/// Results are rounded where they are stored, beside what bf16AttentionError allows.
inline constexpr double storedAttentionError = 8e-3;

class FusedChecks {
public:
    FusedChecks()
    {
        std::string library;
        for (const CudaLibrary& found : findCudaLibraries(CUDART_VERSION / 1000, {}))
            if (found.name == "cuDNN")
                library = found.path;
        m_whyNot = gpu::FusedAttention::whyNotBuilt();
        if (m_whyNot.empty() && library.empty())
            m_whyNot = "cuDNN was not found (libcudnn.so.9)";
        if (!m_whyNot.empty())
            return;
        m_workspace.emplace(2048u << 20);
        m_fused.emplace(gpu::FusedAttention::Use::Always, library, m_workspace->span().data(),
                        m_workspace->span().size(), nullptr, false);
    }
    /// Empty: it is there.
    const std::string& whyNot() const { return m_whyNot; }

    void check(const std::string& name, const GroupedAttentionShape& shape)
    {
        const Bf16Values q(someValues(shape.queries(), 1, 3)), k(someValues(shape.keys(), 2)),
            v(someValues(shape.values(), 3)), dy(someValues(shape.outputs(), 4));
        const auto expected = reference::groupedAttentionForward(shape, q.values, k.values, v.values);
        const auto grads = reference::groupedAttentionInputGrad(shape, q.values, k.values, v.values, dy.values);
        Memory<std::uint16_t> query(q.patterns), key(k.patterns), value(v.patterns), outputGrad(dy.patterns);
        for (const bool byCudnn : {true, false}) { // the gradients; the forward is cuDNN's
            Memory<std::uint16_t> output(shape.outputs()), queryGrad(shape.queries()), keyGrad(shape.keys()),
                valueGrad(shape.values());
            Floats logSums(shape.numbers()), dots(shape.numbers());
            const gpu::Context with{.fused = &*m_fused, .stored = 0b1111},
                backward{.fused = byCudnn ? &*m_fused : nullptr, .stored = 0b11111111};
            test::check(
                "cuDNN's attention, " + name, joined({expected.output, expected.logSums}), storedAttentionError, [&] {
                    gpu::run(with, kernels::GroupedAttentionForward{shape, floats(query), floats(key), floats(value),
                                                                    logSums.span(), floats(output)});
                    return joined({wide(output), wide(logSums)});
                });
            test::check((byCudnn ? "cuDNN's attention grads, " : "own grads of cuDNN's, ") + name,
                        joined({grads.query, grads.key, grads.value}), storedAttentionError, [&] {
                            gpu::run(backward, kernels::GroupedAttentionInputGrad{
                                                   shape, floats(query), floats(key), floats(value), logSums.span(),
                                                   floats(output), floats(outputGrad), floats(queryGrad),
                                                   floats(keyGrad), floats(valueGrad), dots.span()});
                            return joined({wide(queryGrad), wide(keyGrad), wide(valueGrad)});
                        });
            if (const std::string why = m_fused->takeFailure(); !why.empty()) {
                std::printf("WRONG: %s\n", why.c_str());
                ++failures;
            }
        }
    }

    /// A layer's attention of Llama 3 8B, by who does it.
    void measure(int length)
    {
        const GroupedAttentionShape shape{.sequences = 1,
                                          .length = length,
                                          .heads = small ? 2 : 32,
                                          .keyValueHeads = small ? 1 : 8,
                                          .querySize = 128,
                                          .valueSize = 128,
                                          .scale = 0.09f};
        Memory<std::uint16_t> query(shape.queries()), key(shape.keys()), value(shape.values()), output(shape.outputs()),
            outputGrad(shape.outputs()), queryGrad(shape.queries()), keyGrad(shape.keys()), valueGrad(shape.values());
        Floats logSums(shape.numbers()), dots(shape.numbers());
        for (const bool byCudnn : {true, false}) {
            if (byCudnn && !m_fused)
                continue;
            gpu::Context with{.fused = byCudnn ? &*m_fused : nullptr, .stored = 0b1111};
            const double forward = millisecondsOf([&] {
                with.stored = 0b1111;
                gpu::run(with, kernels::GroupedAttentionForward{shape, floats(query), floats(key), floats(value),
                                                                logSums.span(), floats(output)});
            });
            const double backward = millisecondsOf([&] {
                with.stored = 0b11111111;
                gpu::run(with, kernels::GroupedAttentionInputGrad{shape, floats(query), floats(key), floats(value),
                                                                  logSums.span(), floats(output), floats(outputGrad),
                                                                  floats(queryGrad), floats(keyGrad), floats(valueGrad),
                                                                  dots.span()});
            });
            // Of half the scores; two products forward, five backward.
            const double product = double(length) * length * shape.heads * shape.querySize;
            if (const std::string why = m_fused ? m_fused->takeFailure() : std::string(); !why.empty())
                std::printf("%s, %d tokens: %s\n", byCudnn ? "cuDNN" : "own", length, why.c_str());
            else
                std::printf("%s, %d tokens: forward %.2f ms (%.0f TFLOP/s), gradients %.2f ms (%.0f TFLOP/s)\n",
                            byCudnn ? "cuDNN" : "own", length, forward, 2 * product / forward / 1e9, backward,
                            5 * product / backward / 1e9);
        }
    }

private:
    static std::span<float> floats(Memory<std::uint16_t>& stored)
    {
        return {reinterpret_cast<float*>(stored.span().data()), stored.span().size()};
    }
    static Values wide(const Memory<std::uint16_t>& stored)
    {
        Values values;
        for (const std::uint16_t pattern : stored.read())
            values.push_back(std::bit_cast<float>(std::uint32_t(pattern) << 16));
        return values;
    }
    static Values wide(const Floats& floats)
    {
        const std::vector<float> values = floats.read();
        return {values.begin(), values.end()};
    }

    std::string m_whyNot;
    std::optional<Memory<char>> m_workspace;
    std::optional<gpu::FusedAttention> m_fused;
};

inline void checkFusedAttention()
{
    FusedChecks checks;
    if (!checks.whyNot().empty()) {
        std::printf("cuDNN's attention is left out: %s\n", checks.whyNot().c_str());
        return;
    }
    GroupedAttentionShape shape{
        .sequences = 2, .length = 192, .heads = 8, .keyValueHeads = 2, .querySize = 64, .valueSize = 64, .scale = 0.2f};
    checks.check("grouped", shape);
    for (const int size : {80, 96, 128}) {
        shape.querySize = shape.valueSize = size;
        checks.check("heads of " + std::to_string(size), shape);
    }
    shape.window = 50;
    checks.check("window", shape);
    shape.window = 0;
    shape.length = 200; // of no tile's size
    checks.check("odd length", shape);
    shape.keyValueHeads = shape.heads;
    shape.causal = false;
    checks.check("no mask", shape);
}

inline void measureAttention()
{
    FusedChecks checks;
    if (!checks.whyNot().empty())
        std::printf("cuDNN's is left out: %s\n", checks.whyNot().c_str());
    for (const int length : small ? std::vector{16} : std::vector{2048, 4096})
        checks.measure(length);
}

} // namespace pipewright::test
