// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/svgwriter.h"

#include "core/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace pipewright {

namespace {

std::string number(double value)
{
    std::string text;
    appendNumber(text, value);
    return text;
}

std::string geometry(const Rectangle& area, double radius)
{
    std::string text = fmt::format("x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", number(area.x), number(area.y),
                                   number(area.width), number(area.height));
    if (radius > 0)
        text += fmt::format(" rx=\"{}\"", number(radius));
    return text;
}

std::string optional(std::string_view attribute, double opacity)
{
    return opacity >= 1 ? std::string() : fmt::format(" {}=\"{}\"", attribute, number(opacity));
}

} // namespace

void appendNumber(std::string& text, double value)
{
    const long long hundredths = std::llround(std::clamp(value, -1e9, 1e9) * 100);
    if (hundredths < 0)
        text += '-';
    const long long magnitude = std::llabs(hundredths);
    text += std::to_string(magnitude / 100);
    if (const long long rest = magnitude % 100; rest != 0) {
        text += '.';
        text += static_cast<char>('0' + rest / 10);
        if (rest % 10 != 0)
            text += static_cast<char>('0' + rest % 10);
    }
}

void appendPoint(std::string& path, char command, double x, double y)
{
    path += command;
    appendNumber(path, x);
    path += ' ';
    appendNumber(path, y);
}

SvgWriter::SvgWriter(double width, double height, std::string_view title)
    : SvgWriter({0, 0, width, height}, number(width), number(height), title)
{
}

SvgWriter::SvgWriter(const Rectangle& view, std::string_view width, std::string_view height, std::string_view title)
{
    m_text = fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"{} {} {} "
                         "{}\">\n<title>{}</title>\n",
                         width, height, number(view.x), number(view.y), number(view.width), number(view.height),
                         escapedForMarkup(title));
}

void SvgWriter::fill(const Rectangle& area, std::string_view colour, double radius, double opacity)
{
    m_text +=
        fmt::format("<rect {} fill=\"{}\"{}/>\n", geometry(area, radius), colour, optional("fill-opacity", opacity));
}

void SvgWriter::outline(const Rectangle& area, std::string_view colour, double strokeWidth, double radius,
                        std::string_view dashes)
{
    m_text += fmt::format("<rect {} fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"", geometry(area, radius), colour,
                          number(strokeWidth));
    if (!dashes.empty())
        m_text += fmt::format(" stroke-dasharray=\"{}\"", dashes);
    m_text += "/>\n";
}

void SvgWriter::line(double x1, double y1, double x2, double y2, std::string_view colour, double strokeWidth,
                     std::string_view dashes)
{
    m_text += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"{}\"", number(x1),
                          number(y1), number(x2), number(y2), colour, number(strokeWidth));
    if (!dashes.empty())
        m_text += fmt::format(" stroke-dasharray=\"{}\"", dashes);
    m_text += "/>\n";
}

void SvgWriter::text(double x, double baseline, std::string_view text, const TextStyle& style)
{
    constexpr std::size_t most = 300; ///< characters: longer names pass every edge, and take painters minutes
    constexpr std::string_view anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    m_text +=
        fmt::format("<text x=\"{}\" y=\"{}\" font-family=\"{}\" font-size=\"{}\"{}{} fill=\"{}\"{}>{}</text>\n",
                    number(x), number(baseline), style.mono ? "monospace" : "sans-serif", number(style.size),
                    style.bold ? " font-weight=\"bold\"" : "", anchors[static_cast<int>(style.anchor)], style.colour,
                    optional("fill-opacity", style.opacity), escapedForMarkup(shortened(text, most)));
}

void SvgWriter::strokedPath(std::string_view data, std::string_view colour, double strokeWidth, double opacity,
                            std::string_view dashes)
{
    if (!data.empty())
        m_text += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}{}/>\n", data, colour,
                              number(strokeWidth), optional("stroke-opacity", opacity),
                              dashes.empty() ? std::string() : fmt::format(" stroke-dasharray=\"{}\"", dashes));
}

void SvgWriter::filledPath(std::string_view data, std::string_view colour, double opacity)
{
    if (!data.empty())
        m_text += fmt::format("<path d=\"{}\" fill=\"{}\"{}/>\n", data, colour, optional("fill-opacity", opacity));
}

std::string SvgWriter::finish() &&
{
    m_text += "</svg>\n";
    return std::move(m_text);
}

void appendRectangle(std::string& data, const Rectangle& area)
{
    appendPoint(data, 'M', area.x, area.y);
    for (const auto& [command, step] :
         {std::pair{'h', area.width}, std::pair{'v', area.height}, std::pair{'h', -area.width}}) {
        data += command;
        appendNumber(data, step);
    }
    data += 'z';
}

std::string hatch(const Rectangle& area, double spacing, bool rising)
{
    // Rising lines are x + y = c (y grows downwards), falling ones x - y = c.
    std::string data;
    const double low = rising ? area.x + area.y : area.x - area.bottom();
    const double high = rising ? area.right() + area.bottom() : area.right() - area.y;
    for (double c = std::ceil(low / spacing) * spacing; c < high; c += spacing) {
        const double atTop = rising ? c - area.y : c + area.y;
        const double atBottom = rising ? c - area.bottom() : c + area.bottom();
        const double from = std::max(area.x, std::min(atTop, atBottom));
        const double to = std::min(area.right(), std::max(atTop, atBottom));
        if (to - from < 0.5)
            continue;
        appendPoint(data, 'M', from, rising ? c - from : from - c);
        appendPoint(data, 'L', to, rising ? c - to : to - c);
    }
    return data;
}

std::string dots(const Rectangle& area, double spacing, double size)
{
    std::string data;
    bool odd = false;
    for (double y = area.y + spacing / 2; y + size < area.bottom(); y += spacing, odd = !odd) {
        const double first = std::ceil(area.x / spacing) * spacing + (odd ? spacing / 2 : 0);
        for (double x = first; x + size < area.right(); x += spacing)
            appendRectangle(data, {x, y, size, size});
    }
    return data;
}

} // namespace pipewright
