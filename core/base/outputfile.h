// SPDX-License-Identifier: GPL-3.0-or-later
// The one way to write an output file: it appears whole or not at all. It is written under another name in the same
// folder and renamed at the end, so what stood there is replaced in one step; what was begun and not kept is removed.
// Only regular files are replaced. Links are followed; devices, pipes, sockets and folders are refused, and so is
// a file that another process is writing at the time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

class OutputFile {
public:
    /// Throws Error when `path` cannot be written to, see checkOutput(), or its folder cannot. `companions`: endings of
    /// further files that belong to one of this name, such as "-wal"; they are removed together with the old file.
    OutputFile(std::string path, bool overwrite, std::vector<std::string> companions = {});
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    ~OutputFile();

    const std::string& target() const { return m_target; }       ///< `path` with links followed
    const std::string& temporary() const { return m_temporary; } ///< exists, empty; to be written
    /// Throws Error.
    void write(std::string_view content);
    /// Makes it durable and gives it its name. Throws Error; what stood there is then as it was. For as long as this
    /// object lives, other processes are kept from replacing the file.
    void keep();

private:
    [[noreturn]] void fail(int error) const;

    std::string m_path, m_target, m_temporary;
    std::vector<std::string> m_companions;
    bool m_overwrite;
    int m_descriptor = -1;
};

/// Throws Error when `path` is something else than a regular file, or one that exists and `overwrite` is false,
/// or one that is being written. For commands that take long, before they begin.
void checkOutput(const std::string& path, bool overwrite);

/// Where `path` leads, with links followed. Throws Error when something else than a regular file is there.
std::string outputTarget(const std::string& path);

} // namespace pipewright
