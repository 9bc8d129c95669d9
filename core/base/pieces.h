// SPDX-License-Identifier: GPL-3.0-or-later
// Long texts written to a file piece by piece, so that the memory needed does not grow with the text.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace pipewright {

/// Takes the pieces in order.
using Pieces = std::function<void(std::string_view)>;

/// Gathers small parts in `text` and hands them on together.
class PieceBuffer {
public:
    static constexpr std::size_t most = 1 << 20; ///< bytes, before they are handed on

    /// Keeps a reference.
    explicit PieceBuffer(const Pieces& to) : m_to(to) {}

    std::string text;

    /// Call after each part.
    void handOn()
    {
        if (text.size() >= most)
            finish();
    }
    /// Hands on what is left.
    void finish()
    {
        if (!text.empty())
            m_to(text);
        text.clear();
    }

private:
    const Pieces& m_to;
};

/// What `write(pieces)` writes, as one text.
template<typename Write>
std::string joined(Write write)
{
    std::string whole;
    const Pieces append = [&whole](std::string_view piece) { whole += piece; };
    write(append);
    return whole;
}

} // namespace pipewright
