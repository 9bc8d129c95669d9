// SPDX-License-Identifier: GPL-3.0-or-later
// A self-contained HTML page: headings, paragraphs, tables, inline pictures. Text is escaped; invalid UTF-8 is
// replaced.
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
    /// The first column is left-aligned, the others right-aligned; without `numbers` all are left-aligned.
    void table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
               bool numbers = true);
    void picture(std::string_view svg, std::string_view description);

    std::string finish() &&;

private:
    std::string m_text;
};

} // namespace pipewright
