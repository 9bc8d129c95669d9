// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/encoderdata.h"

#include "core/base/diagnostic.h"
#include "executor/stage/counterrandom.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <vector>

namespace pipewright {

EncoderData::EncoderData(std::unique_ptr<TrainingData> text, const ModelShape& shape, std::uint64_t seed)
    : m_text(std::move(text)), m_sequence(static_cast<std::size_t>(shape.sequence)),
      m_masked(shape.tiedHead ? static_cast<std::size_t>(shape.maskedTokens()) : 0),
      m_vocabulary(static_cast<std::uint64_t>(shape.vocabulary)), m_classes(static_cast<std::uint64_t>(shape.hidden)),
      m_seed(seed)
{
    if (m_masked > 0 && m_vocabulary < 2)
        throw Error("model.vocabulary", "its last token stands for a masked one, and there is no other",
                    "use a vocabulary of the text's tokens and one more");
}

void EncoderData::ask(std::uint64_t random, std::span<std::int32_t> tokens, std::span<const std::int32_t> next,
                      std::span<std::int32_t> targets) const
{
    if (m_masked == 0) {
        targets.front() = static_cast<std::int32_t>(static_cast<std::uint64_t>(next.back()) % m_classes);
        return;
    }
    const CounterRandom draw(random, "masks");
    std::vector<std::size_t> places(m_sequence);
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::fill(targets.begin(), targets.end(), -1);
    for (std::size_t i = 0; i < m_masked; ++i) { // the first steps of a shuffle
        std::swap(places[i], places[i + draw.bits(3 * i) % (m_sequence - i)]);
        const std::size_t place = places[i];
        targets[place] = tokens[place];
        const std::uint64_t tenth = draw.bits(3 * i + 1) % 10;
        if (tenth < 8)
            tokens[place] = static_cast<std::int32_t>(m_vocabulary - 1);
        else if (tenth == 8)
            tokens[place] = static_cast<std::int32_t>(draw.bits(3 * i + 2) % m_vocabulary);
    }
}

void EncoderData::sample(std::int64_t step, int microbatch, std::span<std::int32_t> tokens,
                         std::span<std::int32_t> targets) const
{
    std::vector<std::int32_t> next(tokens.size());
    m_text->sample(step, microbatch, tokens, next);
    const CounterRandom random(m_seed, "questions " + std::to_string(step) + "." + std::to_string(microbatch));
    const std::size_t sequences = tokens.size() / m_sequence, asked = targets.size() / sequences;
    for (std::size_t s = 0; s < sequences; ++s)
        ask(random.bits(s), tokens.subspan(s * m_sequence, m_sequence),
            std::span(next).subspan(s * m_sequence, m_sequence), targets.subspan(s * asked, asked));
}

void EncoderData::row(std::uint64_t random, std::span<std::int32_t> tokens, std::span<std::int32_t> targets) const
{
    assert(tokens.size() == m_sequence);
    std::vector<std::int32_t> next(tokens.size());
    m_text->row(random, tokens, next);
    ask(random, tokens, next, targets);
}

} // namespace pipewright
