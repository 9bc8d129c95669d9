// SPDX-License-Identifier: GPL-3.0-or-later
// The definitions of the bubble in words: what each counts, for the command line, the designer and pictures.
#pragma once

#include "core/predict/bubbles.h"

#include <array>
#include <string>
#include <string_view>

namespace pipewright {

struct BubbleRate {
    std::string_view key;     ///< as in `predict --json`
    std::string_view name;    ///< short, as a label
    std::string_view formula; ///< of numbers that stand beside it
    std::string_view counts;
    double Metrics::*value;
};

inline constexpr std::array bubbleRates{
    BubbleRate{"rate_makespan", "bubble", "idle / (devices × makespan)", "blocks and updates are work",
               &Metrics::rateMakespan},
    BubbleRate{"rate_span", "bubble of the span", "(span − its work) / span", "blocks alone are work",
               &Metrics::rateSpan},
    BubbleRate{"rate_papers", "bubble, papers", "(span − ideal) / span",
               "as the zero-bubble papers; blocks alone are work", &Metrics::ratePapers},
    BubbleRate{"ratio_ideal", "bubble / work", "(makespan − ideal) / ideal", "as Megatron; updates count as bubble",
               &Metrics::ratioIdeal},
};

inline constexpr const BubbleRate& rateOfMakespan = bubbleRates[0];
inline constexpr const BubbleRate& rateOfSpan = bubbleRates[1];

/// "idle / (devices × makespan); blocks and updates are work".
inline std::string describe(const BubbleRate& rate)
{
    return std::string(rate.formula) + "; " + std::string(rate.counts);
}

} // namespace pipewright
