// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/safetensors.h"

#include "core/base/diagnostic.h"
#include "core/json/jsontext.h"

#include <nlohmann/json.hpp>

#include <bit>
#include <functional>
#include <numeric>

namespace pipewright {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

void Safetensors::add(const std::string& name, const std::vector<std::int64_t>& shape, std::span<const float> values)
{
    add(name, "F32", shape, values.size(), values.data());
}

void Safetensors::add(const std::string& name, const std::vector<std::int64_t>& shape,
                      std::span<const std::int32_t> values)
{
    add(name, "I32", shape, values.size(), values.data());
}

void Safetensors::add(const std::string& name, const char* type, const std::vector<std::int64_t>& shape,
                      std::size_t count, const void* values)
{
    const auto wanted = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    if (wanted != static_cast<std::int64_t>(count))
        throw Error(name, "its shape is of another number of values");
    constexpr std::size_t width = 4;
    const std::size_t begin = m_data.size();
    m_data.append(static_cast<const char*>(values), count * width);
    if (!m_entries.emplace(name, Entry{type, shape, begin, m_data.size()}).second)
        throw Error(name, "there are two tensors of this name");
}

std::string Safetensors::bytes() const
{
    nlohmann::json header;
    if (!m_metadata.empty())
        header["__metadata__"] = m_metadata;
    for (const auto& [name, entry] : m_entries)
        header[name] = {{"dtype", entry.type}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
    std::string text = jsonText(header);
    text.append((8 - text.size() % 8) % 8, ' '); // the tensors begin at a multiple of 8 bytes
    std::string file;
    file.reserve(8 + text.size() + m_data.size());
    for (std::uint64_t length = text.size(), i = 0; i < 8; ++i)
        file += static_cast<char>(length >> (8 * i) & 0xff);
    return file + text + m_data;
}

} // namespace pipewright
