// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/store/stringpool.h"

namespace pipewright {

std::uint32_t StringPool::id(std::string_view text)
{
    if (const auto found = m_ids.find(text); found != m_ids.end())
        return found->second;
    const auto id = static_cast<std::uint32_t>(m_texts.size());
    m_ids.emplace(m_texts.emplace_back(text), id);
    return id;
}

} // namespace pipewright
