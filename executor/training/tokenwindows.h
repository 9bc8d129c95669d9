// SPDX-License-Identifier: GPL-3.0-or-later
// Which windows of a long row of tokens a microbatch holds: a function of seed, step and microbatch alone, so any
// device can draw its own batch and every schedule sees the same data. Windows are either drawn one by one and may
// begin anywhere, or the row is cut into windows that are shuffled: each is used once before any is used again, in a
// new order on every pass.
#pragma once

#include "core/model/modelshape.h"
#include "executor/stage/counterrandom.h"
#include "executor/training/shuffle.h"

#include <cassert>
#include <cstdint>
#include <span>
#include <string>

namespace pipewright {

class TokenWindows {
public:
    TokenWindows() = default;
    /// Windows drawn at random. `tokens`: more than a sequence has.
    TokenWindows(std::size_t tokens, const ModelShape& shape, std::uint64_t seed)
        : m_sequence(static_cast<std::size_t>(shape.sequence)),
          m_pieces(static_cast<std::size_t>(shape.sequencePieces)), m_windows(tokens - m_sequence), m_seed(seed)
    {
    }
    /// Shuffled windows. `microbatches`: of a step, each piece of a sequence counted.
    static TokenWindows shuffled(std::size_t tokens, const ModelShape& shape, std::uint64_t seed, int microbatches)
    {
        TokenWindows result(tokens, shape, seed);
        result.m_perStep = static_cast<std::uint64_t>(microbatches) / result.m_pieces;
        return result;
    }

    /// Windows of shape.sequence tokens each, and for every token the one that follows it. With sequence pieces the
    /// microbatch is one piece: its part of the windows. Both spans have shape.tokens() elements; `tokenAt` gives a
    /// token by its number.
    template<class TokenAt>
    void sample(std::int64_t step, int microbatch, std::span<std::int32_t> tokens, std::span<std::int32_t> targets,
                TokenAt tokenAt) const
    {
        const std::size_t length = m_sequence / m_pieces, number = static_cast<std::size_t>(microbatch);
        assert(tokens.size() == targets.size() && tokens.size() % length == 0);
        const CounterRandom random(m_seed, "data " + std::to_string(step) + "." + std::to_string(number / m_pieces));
        const std::uint64_t rows = tokens.size() / length,
                            before = (static_cast<std::uint64_t>(step) * m_perStep + number / m_pieces) * rows;
        for (std::size_t at = 0; at < tokens.size(); at += length) {
            const std::size_t begin =
                m_perStep > 0 ? beginOf(before + at / length) : random.bits(at * m_pieces) % m_windows;
            fill(begin + number % m_pieces * length, tokens.subspan(at, length), targets.subspan(at, length), tokenAt);
        }
    }
    /// One window.
    template<class TokenAt>
    void row(std::uint64_t random, std::span<std::int32_t> tokens, std::span<std::int32_t> targets,
             TokenAt tokenAt) const
    {
        assert(tokens.size() <= m_sequence && targets.size() == tokens.size());
        fill(random % m_windows, tokens, targets, tokenAt);
    }

private:
    /// First token of window `number`, counted over all passes through the row.
    std::size_t beginOf(std::uint64_t number) const
    {
        const std::uint64_t cut = (m_windows + m_sequence - 1) / m_sequence; // windows with a next token for each
        return Shuffle(cut, CounterRandom(m_seed, "pass").bits(number / cut)).at(number % cut) * m_sequence;
    }

    template<class TokenAt>
    static void fill(std::size_t begin, std::span<std::int32_t> tokens, std::span<std::int32_t> targets,
                     TokenAt tokenAt)
    {
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            tokens[i] = tokenAt(begin + i);
            targets[i] = tokenAt(begin + i + 1);
        }
    }

    std::size_t m_sequence = 0, m_pieces = 1, m_windows = 0;
    std::uint64_t m_seed = 0;
    std::uint64_t m_perStep = 0; ///< microbatches, where windows are shuffled
};

} // namespace pipewright
