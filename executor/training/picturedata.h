// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures for a vision transformer, drawn rather than read: a digit of five by seven dots with random size, place and
// brightness, on noise. There are ten classes, or fewer where the model has fewer. A picture's bytes come patch by
// patch, in the order in which the model's first layer takes them.
#pragma once

#include "executor/training/trainingdata.h"

namespace pipewright {

class PictureData final : public TrainingData {
public:
    PictureData(const ModelShape& shape, std::uint64_t seed);

    void sample(std::int64_t step, int microbatch, std::span<std::int32_t> inputs,
                std::span<std::int32_t> targets) const override;
    void row(std::uint64_t random, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const override;
    const std::string& source() const override { return m_source; }

private:
    /// A picture's patches, and a patch's values: colours of width x height pixels.
    struct Grid {
        std::size_t columns = 1, rows = 1, width = 1, height = 1, colours = 1;
    };
    static Grid gridOf(const ModelShape& shape);

    Grid m_grid;
    std::uint64_t m_classes, m_seed;
    std::string m_source = "digits drawn by the program";
};

} // namespace pipewright
