// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/newfile.h"

#include "core/base/diagnostic.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace pipewright {

namespace {

std::string reason()
{
    return std::strerror(errno);
}

[[noreturn]] void refuse(const std::string& path)
{
    throw Error(path, "the file exists already", "use --force to replace it");
}

} // namespace

NewFile::NewFile(std::string path, bool overwrite) : m_path(std::move(path)), m_overwrite(overwrite)
{
    std::error_code ignored;
    if (std::filesystem::is_directory(m_path, ignored))
        throw Error(m_path, "is a folder, not a file", "add a file name");
    if (std::filesystem::exists(m_path, ignored) && !overwrite)
        refuse(m_path);
    std::string name = m_path + ".XXXXXX";
    const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
    if (descriptor < 0)
        throw Error(m_path, "cannot be written: " + reason(), "choose a folder that exists and may be written to");
    const mode_t mask = ::umask(0);
    ::umask(mask);
    ::fchmod(descriptor, 0666 & ~mask);
    ::close(descriptor);
    m_temporary = std::move(name);
}

NewFile::~NewFile()
{
    if (m_temporary.empty())
        return;
    for (const char* suffix : {"", "-journal", "-wal", "-shm"})
        ::unlink((m_temporary + suffix).c_str());
}

void NewFile::keep()
{
    const int descriptor = ::open(m_temporary.c_str(), O_RDONLY | O_CLOEXEC);
    const bool synced = descriptor >= 0 && ::fsync(descriptor) == 0;
    const std::string why = reason();
    if (descriptor >= 0)
        ::close(descriptor);
    if (!synced)
        throw Error(m_path, "cannot be written: " + why);
    // link() refuses to replace a file that appeared meanwhile; not every file system has it.
    if (!m_overwrite) {
        if (::link(m_temporary.c_str(), m_path.c_str()) == 0)
            return;
        if (errno == EEXIST)
            refuse(m_path);
    }
    if (::rename(m_temporary.c_str(), m_path.c_str()) != 0)
        throw Error(m_path, "cannot be written: " + reason());
    m_temporary.clear();
}

} // namespace pipewright
