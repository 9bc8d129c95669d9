// SPDX-License-Identifier: GPL-3.0-or-later
// Training text, one token per byte: a file, or the source and text files of a folder one after another
// in the order of their paths. Which windows a microbatch holds is a function of seed, step and microbatch
// alone, so any device can draw its own batch and every schedule sees the same data.
#pragma once

#include "executor/training/trainingdata.h"

#include <filesystem>

namespace pipewright {

class TextData final : public TrainingData {
public:
    /// At most this much text is read; the rest of a larger file or folder is left out.
    static constexpr std::size_t byteLimit = 4u << 20;

    /// Reads a file, or every file below a folder that ends in .h, .hpp, .c, .cc, .cpp, .cu, .cuh, .py, .md,
    /// .txt, .json, .cmake or .sh; hidden files and folders (a leading dot) and links are left out. Throws
    /// Error when the path is missing or unreadable, or for the reasons of fromText.
    static TextData fromPath(const std::filesystem::path& path, const ModelShape& shape, std::uint64_t seed);

    /// Throws Error (its place: `source`) when there is less text than one sequence and its next token, or
    /// when a byte lies outside the model's vocabulary.
    static TextData fromText(std::string text, std::string source, const ModelShape& shape, std::uint64_t seed);

    /// Fills shape.microbatchSize windows of shape.sequence tokens each, and for every token the one that
    /// follows it. With sequence pieces the microbatch is one of them: its part of the windows of the whole.
    /// Both spans have shape.tokens() elements.
    void sample(std::int64_t step, int microbatch, std::span<std::int32_t> tokens,
                std::span<std::int32_t> targets) const override;
    /// One window.
    void row(std::uint64_t random, std::span<std::int32_t> tokens, std::span<std::int32_t> targets) const override;

    const std::string& text() const { return m_text; }
    const std::string& source() const override { return m_source; }

private:
    TextData() = default;

    std::string m_text, m_source;
    std::size_t m_sequence = 0, m_pieces = 1, m_windows = 0;
    std::uint64_t m_seed = 0;
};

} // namespace pipewright
