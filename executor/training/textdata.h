// SPDX-License-Identifier: GPL-3.0-or-later
// Training text, one token per byte: a file, or the source and text files of a folder one after another
// in the order of their paths.
#pragma once

#include "executor/training/tokenwindows.h"
#include "executor/training/trainingdata.h"

#include <filesystem>

namespace pipewright {

class TextData final : public TrainingData {
public:
    /// Most bytes of text that are read; the rest of a larger file or folder is left out.
    static constexpr std::size_t byteLimit = 4u << 20;

    /// Reads a file, or every file below a folder that ends in .h, .hpp, .c, .cc, .cpp, .cu, .cuh, .py, .md,
    /// .txt, .json, .cmake or .sh; hidden files and folders (a leading dot) and links are left out. Throws
    /// Error when the path is missing or unreadable, or for the reasons of fromText.
    static TextData fromPath(const std::filesystem::path& path, const ModelShape& shape, std::uint64_t seed);

    /// Throws Error (its place: `source`) when there is less text than one sequence and its next token, or
    /// when a byte lies outside the model's vocabulary.
    static TextData fromText(std::string text, std::string source, const ModelShape& shape, std::uint64_t seed);

    void sample(std::int64_t step, int microbatch, std::span<std::int32_t> tokens,
                std::span<std::int32_t> targets) const override;
    /// One window.
    void row(std::uint64_t random, std::span<std::int32_t> tokens, std::span<std::int32_t> targets) const override;

    const std::string& text() const { return m_text; }
    const std::string& source() const override { return m_source; }

private:
    TextData() = default;
    std::int32_t tokenAt(std::size_t number) const { return static_cast<unsigned char>(m_text[number]); }

    std::string m_text, m_source;
    TokenWindows m_windows;
};

} // namespace pipewright
