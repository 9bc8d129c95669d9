// SPDX-License-Identifier: GPL-3.0-or-later
// Loss, or another quantity of each update, plotted against updates as SVG, one curve per design: the mean over its
// seeds and, behind it, their range. Curves are smoothed by a moving average, whose width the picture states, and
// distinguished by colour and dashes; the legend is in the order of the curves' ends. O(points).
#pragma once

#include "core/exchange/picturetheme.h"

#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

struct LossSeries {
    std::string name;
    std::vector<std::vector<double>> seeds; ///< per seed, the loss (or what the picture is of) of each update
    bool reference = false;                 ///< drawn thick, in the colour of text
};

/// `window`: updates of the moving average, 1 or more; 0: a thirtieth of the longest curve. `quantity` names what is
/// drawn.
std::string lossPicture(const std::string& title, const std::vector<LossSeries>& curves,
                        const PictureTheme& theme = lightTheme, int window = 0, std::string_view quantity = "loss");

/// values[i] averaged with up to window - 1 values before it.
std::vector<double> movingAverage(const std::vector<double>& values, int window);

} // namespace pipewright
