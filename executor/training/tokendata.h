// SPDX-License-Identifier: GPL-3.0-or-later
// A file of tokens as tokenizers write them for training: numbers of two or four bytes (.u16 and .bin, .u32),
// little-endian, nothing else. It is mapped into memory and read on use. Its windows are shuffled.
#pragma once

#include "executor/training/tokenwindows.h"
#include "executor/training/trainingdata.h"

#include <filesystem>
#include <memory>

namespace pipewright {

class TokenData final : public TrainingData {
public:
    static bool isTokenFile(const std::filesystem::path& path);

    /// Throws Error: a file that cannot be read, half a token at its end, or less than one sequence and its next token.
    /// `microbatches`: of a step.
    static TokenData fromFile(const std::filesystem::path& path, const ModelShape& shape, std::uint64_t seed,
                              int microbatches);

    /// All but the last tenth, or that tenth.
    TokenData part(const ModelShape& shape, bool heldBack, std::uint64_t seed) const;

    /// Throws Error for a token outside of the model's vocabulary, with its place in the file.
    void sample(std::int64_t step, int microbatch, std::span<std::int32_t> tokens,
                std::span<std::int32_t> targets) const override;
    void row(std::uint64_t random, std::span<std::int32_t> tokens, std::span<std::int32_t> targets) const override;
    const std::string& source() const override { return m_source; }
    std::size_t tokens() const { return m_count; }

private:
    class Mapping;
    TokenData() = default;
    TokenData range(std::size_t first, std::size_t count, std::string source, const ModelShape& shape,
                    std::uint64_t seed) const;
    std::int32_t tokenAt(std::size_t number) const;

    std::shared_ptr<const Mapping> m_file;
    std::string m_source;
    int m_width = 2; ///< bytes of a token
    std::size_t m_first = 0, m_count = 0;
    std::int64_t m_vocabulary = 0;
    int m_microbatches = 1;
    TokenWindows m_windows;
};

} // namespace pipewright
