// SPDX-License-Identifier: GPL-3.0-or-later
// The one way to write an output file: complete or not at all. It is written under a temporary name in the same folder
// and renamed at the end, which replaces an old file atomically. An unfinished file is removed; one that a killed
// process left is removed when the same file is written again. Only regular files are replaced. Links are followed;
// devices, pipes, sockets and folders are refused, and so is a file that another process is writing at the time.
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
    /// Syncs the file and renames it. Throws Error and then leaves the old file unchanged. While this object lives,
    /// other processes cannot replace the file.
    void keep();
    /// After keep(): whether the file is still the one of that name.
    bool stillThere() const;

private:
    [[noreturn]] void fail(int error) const;

    std::string m_path, m_target, m_temporary;
    std::vector<std::string> m_companions;
    bool m_overwrite;
    int m_descriptor = -1;

    friend void removeUnfinishedFiles() noexcept;
    std::vector<std::string> m_onSignal; ///< paths; not changed while a signal may come
};

/// Removes the files that this process has begun and not kept. For a process that ends by a signal: it may be called in
/// a signal handler.
void removeUnfinishedFiles() noexcept;

/// Throws Error when `path` is something else than a regular file, or one that exists and `overwrite` is false,
/// or one that is being written. For commands that take long, before they begin.
void checkOutput(const std::string& path, bool overwrite);

/// `path` with links followed. Throws Error when it is not a regular file.
std::string outputTarget(const std::string& path);

} // namespace pipewright
