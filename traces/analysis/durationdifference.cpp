// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/durationdifference.h"

#include "core/base/beyondprediction.h"

#include <algorithm>
#include <vector>

namespace pipewright {

double beyondPrediction(const Comparison::BlockError& block, const Timeline& predicted)
{
    const auto length = static_cast<double>(predicted.end[block.task] - predicted.start[block.task]);
    return beyondPrediction(length + static_cast<double>(block.contribution), length);
}

double medianBeyond(const Comparison& comparison, const Timeline& predicted)
{
    if (comparison.blocks.empty())
        return 0;
    std::vector<double> shares;
    for (const Comparison::BlockError& block : comparison.blocks)
        shares.push_back(beyondPrediction(block, predicted));
    const auto middle = shares.begin() + static_cast<std::ptrdiff_t>((shares.size() - 1) / 2);
    std::nth_element(shares.begin(), middle, shares.end());
    return *middle;
}

} // namespace pipewright
