// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/picturedata.h"

#include "executor/stage/counterrandom.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace pipewright {

namespace {

constexpr int dotColumns = 5, dotRows = 7;

/// Row by row, one bit per dot; the leftmost dot is the highest bit.
constexpr std::array<std::array<unsigned char, dotRows>, 10> digits{{{14, 17, 19, 21, 25, 17, 14},
                                                                     {4, 12, 4, 4, 4, 4, 14},
                                                                     {14, 17, 1, 2, 4, 8, 31},
                                                                     {31, 2, 4, 2, 1, 17, 14},
                                                                     {2, 6, 10, 18, 31, 2, 2},
                                                                     {31, 16, 30, 1, 1, 17, 14},
                                                                     {6, 8, 16, 30, 17, 17, 14},
                                                                     {31, 1, 2, 4, 8, 8, 8},
                                                                     {14, 17, 17, 14, 17, 17, 14},
                                                                     {14, 17, 17, 15, 1, 2, 12}}};

/// The divisor of `number` nearest to its square root, not above it.
std::size_t sideOf(std::size_t number)
{
    auto side = static_cast<std::size_t>(std::sqrt(static_cast<double>(number)));
    while (number % side != 0)
        --side;
    return side;
}

bool isDot(std::uint64_t digit, double column, double row)
{
    if (column < 0 || row < 0 || column >= dotColumns || row >= dotRows)
        return false;
    return digits[digit][static_cast<std::size_t>(row)] >> (dotColumns - 1 - static_cast<int>(column)) & 1;
}

} // namespace

PictureData::Grid PictureData::gridOf(const ModelShape& shape)
{
    Grid grid;
    const auto patches = static_cast<std::size_t>(shape.sequence - 1);
    grid.rows = sideOf(patches);
    grid.columns = patches / grid.rows;
    auto pixels = static_cast<std::size_t>(shape.patchElements);
    const std::size_t third = pixels / 3;
    if (pixels % 3 == 0 && sideOf(third) * sideOf(third) == third) { // red, green and blue of square patches
        grid.colours = 3;
        pixels = third;
    }
    grid.height = sideOf(pixels);
    grid.width = pixels / grid.height;
    return grid;
}

PictureData::PictureData(const ModelShape& shape, std::uint64_t seed)
    : m_grid(gridOf(shape)),
      m_classes(std::min<std::uint64_t>(digits.size(), static_cast<std::uint64_t>(shape.vocabulary))), m_seed(seed)
{
}

void PictureData::row(std::uint64_t random, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const
{
    const CounterRandom draw(random, "picture");
    const std::uint64_t digit = draw.bits(0) % m_classes;
    targets.front() = static_cast<std::int32_t>(digit);
    // A dot's size in pixels, so that the digit takes half to all of the picture's height, and its left upper corner.
    const std::size_t width = m_grid.columns * m_grid.width, height = m_grid.rows * m_grid.height;
    const double most = std::min(static_cast<double>(width) / dotColumns, static_cast<double>(height) / dotRows),
                 dot = most * (0.5 + draw.uniform(1) / 2),
                 left = draw.uniform(2) * (static_cast<double>(width) - dot * dotColumns),
                 top = draw.uniform(3) * (static_cast<double>(height) - dot * dotRows),
                 brightness = 128 + 127 * draw.uniform(4);
    std::size_t at = 0;
    for (std::size_t patch = 0; patch < m_grid.columns * m_grid.rows; ++patch)
        for (std::size_t pixel = 0; pixel < m_grid.width * m_grid.height; ++pixel) {
            const std::size_t x = patch % m_grid.columns * m_grid.width + pixel % m_grid.width,
                              y = patch / m_grid.columns * m_grid.height + pixel / m_grid.width;
            const bool inside =
                isDot(digit, (static_cast<double>(x) + 0.5 - left) / dot, (static_cast<double>(y) + 0.5 - top) / dot);
            for (std::size_t colour = 0; colour < m_grid.colours; ++colour, ++at) {
                const double noise = 48 * draw.uniform(5 + at);
                inputs[at] = static_cast<std::int32_t>(std::min(255.0, noise + (inside ? brightness : 0)));
            }
        }
    assert(at == inputs.size());
}

void PictureData::sample(std::int64_t step, int microbatch, std::span<std::int32_t> inputs,
                         std::span<std::int32_t> targets) const
{
    const CounterRandom random(m_seed, "data " + std::to_string(step) + "." + std::to_string(microbatch));
    const std::size_t each = inputs.size() / targets.size();
    for (std::size_t picture = 0; picture < targets.size(); ++picture)
        row(random.bits(picture), inputs.subspan(picture * each, each), targets.subspan(picture, 1));
}

} // namespace pipewright
