// SPDX-License-Identifier: GPL-3.0-or-later
// In a file of its own, which is cold: to compile std::regex with -O2 takes four seconds.
#include "traces/analysis/layerexpression.h"

#include "core/base/diagnostic.h"

#include <regex>

namespace pipewright {

struct LayerExpression::Regex {
    std::regex regex;
};

LayerExpression::LayerExpression(const std::string& expression)
try : m_regex(new Regex{std::regex(expression, std::regex::ECMAScript | std::regex::optimize)}) {
} catch (const std::regex_error& error) {
    throw Error("--layers", inQuotes(expression) + " is no regular expression: " + error.what(),
                "such as \"block [0-9]+|head\"");
}

LayerExpression::~LayerExpression() = default;

bool LayerExpression::isIn(const std::string& name) const
{
    return std::regex_search(name, m_regex->regex);
}

} // namespace pipewright
