// SPDX-License-Identifier: GPL-3.0-or-later
// A file in memory with a name of its own, for parsers that read files.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

namespace pipewright::fuzz {

class TemporaryFile {
public:
    /// `ending`: of the name.
    explicit TemporaryFile(const std::string& ending) : m_file(::memfd_create("fuzz", MFD_CLOEXEC))
    {
        char folder[] = "/tmp/fuzz-XXXXXX";
        if (m_file < 0 || ::mkdtemp(folder) == nullptr)
            std::abort();
        m_folder = folder;
        m_path = m_folder + "/input" + ending;
        if (::symlink(("/proc/self/fd/" + std::to_string(m_file)).c_str(), m_path.c_str()) != 0)
            std::abort();
    }
    ~TemporaryFile()
    {
        ::unlink(m_path.c_str());
        ::rmdir(m_folder.c_str());
        ::close(m_file);
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    void fill(const std::uint8_t* data, std::size_t size) const
    {
        if (::ftruncate(m_file, 0) != 0 || ::pwrite(m_file, data, size, 0) != static_cast<ssize_t>(size))
            std::abort();
    }
    const std::string& path() const { return m_path; }

private:
    int m_file;
    std::string m_folder, m_path;
};

} // namespace pipewright::fuzz
