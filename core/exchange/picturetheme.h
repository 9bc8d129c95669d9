// SPDX-License-Identifier: GPL-3.0-or-later
// The colours of pictures, one table per theme, and the only place that names them. The window uses the same colours
// for operations.
#pragma once

#include "core/schedule/block.h"

#include <array>
#include <string_view>

namespace pipewright {

struct PictureTheme {
    std::string_view background, panel, hairline, text, dim, accent, good, bad;
    std::string_view ink;                         ///< letters and textures on blocks
    std::string_view persistent;                  ///< weights and optimizer state under the memory curve
    std::array<std::string_view, opCount> blocks; ///< by Op: F, B, I, W, R, U
    std::string_view reduction;

    /// The colour of an Op, given as a number; opCount: of a reduction.
    std::string_view colourOf(int op) const { return op < opCount ? blocks[op] : reduction; }
    std::string_view colourOf(Op op) const { return blocks[indexOf(op)]; }
};

inline constexpr PictureTheme darkTheme{"#15171c",
                                        "#1c1f26",
                                        "#2c313b",
                                        "#dfe4ec",
                                        "#8d97a7",
                                        "#7aa2ff",
                                        "#58c99b",
                                        "#ff7a6b",
                                        "#10141b",
                                        "#2f4a55",
                                        {"#4f9fe3", "#e5694a", "#e8a33d", "#3fae84", "#8aa0b4", "#a88bf0"},
                                        "#8d97a7"};
inline constexpr PictureTheme lightTheme{"#f4f5f8",
                                         "#ffffff",
                                         "#dde1e8",
                                         "#1d2430",
                                         "#667085",
                                         "#2f62d9",
                                         "#12875a",
                                         "#c8392b",
                                         "#1d2430",
                                         "#bcd5e4",
                                         {"#5aa9e6", "#ee7d5f", "#efb04a", "#57bf98", "#a3b5c6", "#b59bf5"},
                                         "#98a2b3"};
/// On white: blocks as in the light theme, and no ground of another colour.
inline constexpr PictureTheme paperTheme = [] {
    PictureTheme theme = lightTheme;
    theme.background = theme.panel;
    theme.hairline = "#d5dae2";
    theme.text = "#000000";
    theme.dim = "#4a5363";
    return theme;
}();
/// For a black and white print: textures tell operations apart, these greys only help.
inline constexpr PictureTheme greyTheme{"#ffffff",
                                        "#ffffff",
                                        "#c4c4c4",
                                        "#000000",
                                        "#3c3c3c",
                                        "#555555",
                                        "#000000",
                                        "#000000",
                                        "#000000",
                                        "#d9d9d9",
                                        {"#d4d4d4", "#ffffff", "#ffffff", "#ffffff", "#ffffff", "#ffffff"},
                                        "#888888"};
/// Greys of blocks too narrow for a texture in a black and white print, by Op; the last is a reduction's.
inline constexpr std::array<std::string_view, opCount + 1> greyOfNarrowBlocks{
    "#d4d4d4", "#6e6e6e", "#8c8c8c", "#b4b4b4", "#a0a0a0", "#404040", "#888888"};
static_assert(!greyOfNarrowBlocks.back().empty() && !paperTheme.blocks.back().empty()
                  && !greyTheme.blocks.back().empty() && !darkTheme.blocks.back().empty()
                  && !lightTheme.blocks.back().empty(),
              "a colour for every operation, in every theme");

} // namespace pipewright
