// SPDX-License-Identifier: GPL-3.0-or-later
// Training data of an encoder, made from the sequences of a text or of a file of tokens. With a tied head the task is
// masked tokens (Devlin et al., arXiv 1810.04805, section 3.1): 15 % of the tokens of every sequence are chosen; 80 %
// of these become the mask, here the vocabulary's last token, 10 % a random token, and 10 % stay; all other targets are
// -1. Otherwise the target of a sequence is the token after it, modulo the number of the pooler's outputs.
#pragma once

#include "executor/training/trainingdata.h"

#include <memory>

namespace pipewright {

class EncoderData final : public TrainingData {
public:
    /// `text` gives whole sequences of tokens, and for every token the next one. Throws Error for a vocabulary that has
    /// no room for a mask.
    EncoderData(std::unique_ptr<TrainingData> text, const ModelShape& shape, std::uint64_t seed);

    void sample(std::int64_t step, int microbatch, std::span<std::int32_t> tokens,
                std::span<std::int32_t> targets) const override;
    void row(std::uint64_t random, std::span<std::int32_t> tokens, std::span<std::int32_t> targets) const override;
    const std::string& source() const override { return m_text->source(); }

private:
    /// Turns one sequence and its next tokens into the model's input and targets.
    void ask(std::uint64_t random, std::span<std::int32_t> tokens, std::span<const std::int32_t> next,
             std::span<std::int32_t> targets) const;

    std::unique_ptr<TrainingData> m_text;
    std::size_t m_sequence, m_masked; ///< m_masked 0: the next token is asked for
    std::uint64_t m_vocabulary, m_classes, m_seed;
};

} // namespace pipewright
