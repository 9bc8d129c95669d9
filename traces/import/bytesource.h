// SPDX-License-Identifier: GPL-3.0-or-later
// Input of an importer: a plain or gzip file, read in pieces, or a text in memory for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace pipewright {

class ByteSource {
public:
    virtual ~ByteSource() = default;
    /// At most `size` bytes; 0 at the end. Throws Error when the file cannot be read.
    virtual std::size_t read(char* to, std::size_t size) = 0;
    virtual double fraction() const = 0; ///< share of the file read so far
    /// Describes a fault such as a truncated compressed file; empty when there is none. Valid after the end.
    virtual std::string complaint() const { return {}; }
};

/// Default limit on decompressed bytes: a compressed file of a few MB can expand to more than there is time and memory
/// for.
inline constexpr std::uint64_t mostDecompressed = std::uint64_t{16} << 30;

/// Throws Error when the file cannot be opened; reading throws when a compressed file expands to more than `most`
/// bytes.
std::unique_ptr<ByteSource> openBytes(const std::string& path, std::uint64_t most = mostDecompressed);
/// `text` must outlive the source.
std::unique_ptr<ByteSource> bytesOf(std::string_view text);

} // namespace pipewright
