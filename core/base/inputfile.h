// SPDX-License-Identifier: GPL-3.0-or-later
// The one way to open a file that is read. Opening never waits: a pipe without a writer is refused. So are devices,
// sockets and pipes where the file is mapped or read at several places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace pipewright {

class InputFile {
public:
    enum class Kind {
        File,   ///< regular files only
        Stream, ///< devices too, and pipes that somebody writes to or has written to; the reader states its limit
    };
    /// Throws Error (where = `path`).
    explicit InputFile(std::string path, Kind accepted = Kind::File);
    InputFile(InputFile&& other) noexcept;
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;
    ~InputFile();

    std::uint64_t size() const { return m_size; } ///< 0 unless it is a regular file
    /// Continues where the last call ended; returns less than `size` only at the end of the file. Throws Error.
    std::size_t read(char* to, std::size_t size);
    /// Regular files only: sets where read() continues.
    void seek(std::uint64_t offset);
    /// The next line without its end; false at the end of the file. Throws Error.
    bool readLine(std::string& line);
    int descriptor() const { return m_descriptor; }
    int release(); ///< the descriptor, to be closed by the caller

private:
    std::string m_path, m_ahead; ///< m_ahead: read and not yet handed out
    int m_descriptor = -1;
    std::uint64_t m_size = 0;
};

/// Whether there is anything of this name. False also where that cannot be found out, as when the name is too long or a
/// folder may not be entered.
bool pathExists(const std::string& path);

/// The first bytes, at most `most`, by which formats are recognised; empty when it is no regular file or cannot be
/// read, which the reader then reports.
std::string beginningOf(const std::string& path, std::size_t most);

/// Whether it begins as an SQLite database does, such as a recording; a design is text.
bool isDatabase(const std::string& path);

} // namespace pipewright
