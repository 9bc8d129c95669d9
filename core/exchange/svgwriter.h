// SPDX-License-Identifier: GPL-3.0-or-later
// The few SVG shapes that pictures need, limited to what QtSvg 6.4 and browsers draw identically: no patterns, clips or
// styles; a texture is one path of line segments clipped to its rectangle.
#pragma once

#include <string>
#include <string_view>

namespace pipewright {

struct Rectangle {
    double x = 0, y = 0, width = 0, height = 0;
    double right() const { return x + width; }
    double bottom() const { return y + height; }
};

enum class Anchor { Start, Middle, End };

struct TextStyle {
    double size = 11;
    std::string_view colour;
    bool mono = false;
    bool bold = false;
    Anchor anchor = Anchor::Start;
    double opacity = 1;
};

class SvgWriter {
public:
    SvgWriter(double width, double height, std::string_view title);
    /// Drawn in a space of `view`, shown in the size that the two lengths say: "8.5cm", "1400".
    SvgWriter(const Rectangle& view, std::string_view width, std::string_view height, std::string_view title);

    void fill(const Rectangle& area, std::string_view colour, double radius = 0, double opacity = 1);
    void outline(const Rectangle& area, std::string_view colour, double strokeWidth, double radius = 0,
                 std::string_view dashes = {});
    void line(double x1, double y1, double x2, double y2, std::string_view colour, double strokeWidth = 1,
              std::string_view dashes = {});
    void text(double x, double baseline, std::string_view text, const TextStyle& style);
    /// `data` as in the d attribute; nothing is drawn when it is empty.
    void strokedPath(std::string_view data, std::string_view colour, double strokeWidth, double opacity = 1,
                     std::string_view dashes = {});
    void filledPath(std::string_view data, std::string_view colour, double opacity = 1);

    std::string finish() &&;

private:
    std::string m_text;
};

/// At most two decimals, no trailing zeros.
void appendNumber(std::string& text, double value);

/// "M10.5 20" with command 'M'.
void appendPoint(std::string& path, char command, double x, double y);

/// A rectangle as path data, to be filled with others of its colour.
void appendRectangle(std::string& data, const Rectangle& area);

/// Segments of 45 degree lines (rising to the right, or falling) `spacing` apart inside `area`, as path data. Lines are
/// anchored to the picture, so that neighbouring areas continue each other.
std::string hatch(const Rectangle& area, double spacing, bool rising);
/// Squares of `size` in staggered rows `spacing` apart, as path data to fill.
std::string dots(const Rectangle& area, double spacing, double size);

} // namespace pipewright
