// SPDX-License-Identifier: GPL-3.0-or-later
// Interned names of a trace: millions of slices have a few thousand names. The numbers are the ids of the table
// StringIds, which begins with "" as 0. Looking up a known name is one hash.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace pipewright {

class StringPool {
public:
    StringPool() { id({}); }
    StringPool(StringPool&&) = default;
    StringPool& operator=(StringPool&&) = default;

    std::uint32_t id(std::string_view text); ///< the same for the same text
    const std::string& text(std::uint32_t id) const { return m_texts[id]; }
    std::size_t size() const { return m_texts.size(); }

private:
    std::deque<std::string> m_texts; ///< a deque, so that the keys below stay valid
    std::unordered_map<std::string_view, std::uint32_t> m_ids;
};

} // namespace pipewright
