// SPDX-License-Identifier: GPL-3.0-or-later
// Just enough of protobuf's wire format to write messages.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace pipewright {

class ProtoMessage {
public:
    void number(std::uint32_t field, std::uint64_t value)
    {
        varint(field << 3);
        varint(value);
    }
    void fixed(std::uint32_t field, std::uint64_t value)
    {
        varint(field << 3 | 1);
        for (int i = 0; i < 8; ++i)
            m_bytes += static_cast<char>(value >> (8 * i) & 0xff);
    }
    void real(std::uint32_t field, double value) { fixed(field, std::bit_cast<std::uint64_t>(value)); }
    void text(std::uint32_t field, std::string_view value)
    {
        varint(field << 3 | 2);
        varint(value.size());
        m_bytes += value;
    }
    void message(std::uint32_t field, const ProtoMessage& value) { text(field, value.bytes()); }
    const std::string& bytes() const { return m_bytes; }
    void clear() { m_bytes.clear(); }

private:
    void varint(std::uint64_t value)
    {
        for (; value >= 0x80; value >>= 7)
            m_bytes += static_cast<char>((value & 0x7f) | 0x80);
        m_bytes += static_cast<char>(value);
    }
    std::string m_bytes;
};

} // namespace pipewright
