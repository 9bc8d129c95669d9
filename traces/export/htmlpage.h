// SPDX-License-Identifier: GPL-3.0-or-later
// A page of HTML that needs nothing but itself: headings, paragraphs, tables, pictures inline. Text is escaped; bytes
// that are no UTF-8 are replaced.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

class HtmlPage {
public:
    HtmlPage(std::string_view title, std::string_view subtitle);

    void heading(std::string_view text);
    void paragraph(std::string_view text, bool strong = false);
    /// The first column is aligned left, the others right; `numbers` false: all left.
    void table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
               bool numbers = true);
    void picture(std::string_view svg, std::string_view description);

    std::string finish() &&;

private:
    std::string m_text;
};

std::string escapedForHtml(std::string_view text);

} // namespace pipewright
