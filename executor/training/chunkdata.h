// SPDX-License-Identifier: GPL-3.0-or-later
// Data for a classifier that tells the kind of file from a chunk of its bytes. It is made from real files: those of a
// folder, grouped by the ending of their names. The kinds with the most bytes are used, as many as the model has
// classes. Every kind is drawn equally often, so guessing is right once in as many times. A chunk is given as the bag
// of its bytes and of its byte pairs, the latter hashed into the rest of the feature table.
#pragma once

#include "executor/training/trainingdata.h"

#include <filesystem>
#include <vector>

namespace pipewright {

class ChunkData final : public TrainingData {
public:
    /// At most this much of a kind is read, in the order of the paths.
    static constexpr std::size_t byteLimit = 1u << 20;

    struct Kind {
        std::string name;  ///< "json"; "plain" for files without an ending
        std::string bytes; ///< of its files, one after the other
    };

    /// Hidden files and folders (a leading dot) and links are left out. Throws Error when the folder cannot be read or
    /// holds too few kinds with enough bytes, naming those it has.
    static ChunkData fromFolder(const std::filesystem::path& folder, const ModelShape& shape, std::uint64_t seed);
    /// From exactly these kinds, one class each. Throws Error when their number is not the model's number of classes.
    static ChunkData fromKinds(std::vector<Kind> kinds, std::string source, const ModelShape& shape,
                               std::uint64_t seed);

    /// All but the last tenth of each kind, or that tenth.
    ChunkData part(const ModelShape& shape, bool heldBack, std::uint64_t seed) const;

    void sample(std::int64_t step, int microbatch, std::span<std::int32_t> inputs,
                std::span<std::int32_t> targets) const override;
    void row(std::uint64_t random, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const override;
    const std::string& source() const override { return m_source; }
    const std::vector<Kind>& kinds() const { return m_kinds; }

private:
    ChunkData() = default;

    std::vector<Kind> m_kinds;
    std::string m_source;
    std::size_t m_length = 0;  ///< bytes of a chunk
    std::uint32_t m_pairs = 1; ///< features for pairs of bytes
    std::uint64_t m_seed = 0;
};

} // namespace pipewright
