// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/export/htmlpage.h"

#include "core/base/utf8.h"

#include <cstddef>
#include <utility>

namespace pipewright {

namespace {

constexpr std::string_view style = R"(
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2430; background: #f4f5f8; margin: 0; }
main { max-width: 1440px; margin: 0 auto; padding: 28px 24px 60px; }
h1 { font-size: 24px; margin: 0; } h2 { font-size: 17px; margin: 34px 0 10px; }
.sub { color: #667085; margin: 2px 0 18px; }
.strong { font-size: 17px; font-weight: 600; }
table { border-collapse: collapse; background: #fff; font-size: 13.5px; }
th, td { padding: 5px 12px; border-bottom: 1px solid #dde1e8; text-align: right; font-variant-numeric: tabular-nums; }
th { font-weight: 600; color: #667085; } th:first-child, td:first-child, .words th, .words td { text-align: left; }
.scroll, figure { overflow-x: auto; } figure { margin: 12px 0; } svg { max-width: 100%; height: auto; }
)";

} // namespace

HtmlPage::HtmlPage(std::string_view title, std::string_view subtitle)
{
    const std::string name = escapedForMarkup(title);
    m_text = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>" + name + "</title>\n<style>"
             + std::string(style) + "</style></head>\n<body><main>\n<h1>" + name + "</h1>\n<p class=\"sub\">"
             + escapedForMarkup(subtitle) + "</p>\n";
}

void HtmlPage::heading(std::string_view text)
{
    m_text += "<h2>" + escapedForMarkup(text) + "</h2>\n";
}

void HtmlPage::paragraph(std::string_view text, bool strong)
{
    m_text += (strong ? "<p class=\"strong\">" : "<p>") + escapedForMarkup(text) + "</p>\n";
}

void HtmlPage::table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
                     bool numbers)
{
    m_text += numbers ? "<div class=\"scroll\"><table>\n<tr>" : "<div class=\"scroll\"><table class=\"words\">\n<tr>";
    for (const std::string& cell : header)
        m_text += "<th>" + escapedForMarkup(cell) + "</th>";
    m_text += "</tr>\n";
    for (const auto& row : rows) {
        m_text += "<tr>";
        for (const std::string& cell : row)
            m_text += "<td>" + escapedForMarkup(cell) + "</td>";
        m_text += "</tr>\n";
    }
    m_text += "</table></div>\n";
}

void HtmlPage::picture(std::string_view svg, std::string_view description)
{
    // An XML declaration is invalid inside a page.
    if (const std::size_t begin = svg.find("<svg"); begin != std::string_view::npos)
        svg.remove_prefix(begin);
    m_text += "<figure role=\"img\" aria-label=\"" + escapedForMarkup(description) + "\">\n" + std::string(svg)
              + "\n</figure>\n";
}

std::string HtmlPage::finish() &&
{
    m_text += "</main></body></html>\n";
    return std::move(m_text);
}

} // namespace pipewright
