// SPDX-License-Identifier: GPL-3.0-or-later
// The regular expression of `--layers`, which tells the ranges of layers from others.
#pragma once

#include <memory>
#include <string>

namespace pipewright {

class LayerExpression {
public:
    /// An ECMAScript expression. Throws Error ("--layers") when it is none.
    explicit LayerExpression(const std::string& expression);
    ~LayerExpression();

    /// Whether it matches a part of the name.
    bool isIn(const std::string& name) const;

private:
    struct Regex;
    std::unique_ptr<const Regex> m_regex;
};

} // namespace pipewright
