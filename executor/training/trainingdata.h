// SPDX-License-Identifier: GPL-3.0-or-later
// What a model is trained on, as the stages take it: integers for the first layer, a target class for every row of
// the last one. Which rows a microbatch holds is a function of seed, step and microbatch alone, so any device can
// draw its own and every schedule sees the same data.
#pragma once

#include "core/model/modelshape.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace pipewright {

class TrainingData {
public:
    virtual ~TrainingData() = default;

    /// Fills a whole microbatch: shape.inputs() integers and shape.targets() targets; negative targets do not count.
    virtual void sample(std::int64_t step, int microbatch, std::span<std::int32_t> inputs,
                        std::span<std::int32_t> targets) const = 0;
    /// Fills one of a microbatch's microbatchSize rows; `random` chooses the sample.
    virtual void row(std::uint64_t random, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const = 0;
    virtual const std::string& source() const = 0;
};

/// The data that a model of this shape takes from a file or folder: text, a file of tokens, or for a classifier chunks
/// of files of several kinds. An encoder's tokens are masked, or the target is the next token. Without a path it is a
/// small built-in text, or the program's own resources. A vision transformer's pictures are drawn, not read. Throws
/// Error. `microbatches`: of a step; a file of tokens is passed through once before any of it comes again.
std::unique_ptr<TrainingData> loadTrainingData(const std::string& path, const ModelShape& shape, std::uint64_t seed,
                                               int microbatches);

/// The same, and its last tenth (of each kind), which is never trained on.
struct SplitData {
    std::unique_ptr<TrainingData> training, heldBack;
};
SplitData loadSplitData(const std::string& path, const ModelShape& shape, std::uint64_t seed, int microbatches);

} // namespace pipewright
