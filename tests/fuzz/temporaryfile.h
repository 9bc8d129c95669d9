// SPDX-License-Identifier: GPL-3.0-or-later
// A file in memory with a name of its own, for parsers that read files. What looks beside the file, as SQLite does, or
// follows the name to the file's own needs one of a folder, which is in memory too where that can be.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace pipewright::fuzz {

class TemporaryFile {
public:
    enum class Kind : std::uint8_t { OfNoFolder, OfAFolder };

    /// `ending`: of the name.
    explicit TemporaryFile(const std::string& ending, Kind kind = Kind::OfNoFolder)
    {
        std::string folder = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm/fuzz-XXXXXX" : "/tmp/fuzz-XXXXXX";
        if (::mkdtemp(folder.data()) == nullptr)
            std::abort();
        m_folder = folder;
        m_path = m_folder + "/input" + ending;
        m_file = kind == Kind::OfAFolder ? ::open(m_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)
                                         : ::memfd_create("fuzz", MFD_CLOEXEC);
        const std::string own = "/proc/self/fd/" + std::to_string(m_file);
        if (m_file < 0 || (kind == Kind::OfNoFolder && ::symlink(own.c_str(), m_path.c_str()) != 0))
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
        // Its pages stay: giving them back and asking for them again took longer than most parsers.
        if (::pwrite(m_file, data, size, 0) != static_cast<ssize_t>(size)
            || ::ftruncate(m_file, static_cast<off_t>(size)) != 0)
            std::abort();
    }
    void fill(const std::string& text) const { fill(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()); }
    const std::string& path() const { return m_path; }

private:
    int m_file = -1;
    std::string m_folder, m_path;
};

} // namespace pipewright::fuzz
