// SPDX-License-Identifier: GPL-3.0-or-later
// The safetensors file format: the length of a header (8 bytes, little-endian), the header in JSON (per tensor its
// type, shape and offsets; "__metadata__" with strings), then the tensors one after the other. Every framework reads
// it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace pipewright {

class Safetensors {
public:
    /// Copies the values. Throws Error if the name exists already, or the shape is not that of the number of values.
    void add(const std::string& name, const std::vector<std::int64_t>& shape, std::span<const float> values);
    void add(const std::string& name, const std::vector<std::int64_t>& shape, std::span<const std::int32_t> values);
    void setMetadata(const std::string& key, std::string text) { m_metadata[key] = std::move(text); }

    std::string bytes() const; ///< the file

private:
    struct Entry {
        const char* type;
        std::vector<std::int64_t> shape;
        std::size_t begin, end; ///< in m_data
    };
    void add(const std::string& name, const char* type, const std::vector<std::int64_t>& shape, std::size_t count,
             const void* values);

    std::map<std::string, Entry> m_entries;
    std::map<std::string, std::string> m_metadata;
    std::string m_data;
};

} // namespace pipewright
