// SPDX-License-Identifier: GPL-3.0-or-later
// Opens without blocking, checks the kind of the file, then reads with blocking.
#include "core/base/inputfile.h"

#include "core/base/diagnostic.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pipewright {

namespace {

std::string faultText(int error)
{
    return std::system_category().message(error);
}

const char* kindOfFile(mode_t mode)
{
    if (S_ISFIFO(mode))
        return "a pipe";
    if (S_ISSOCK(mode))
        return "a socket";
    return "a device";
}

} // namespace

InputFile::InputFile(std::string path, Kind accepted) : m_path(std::move(path))
{
    struct stat facts {};
    // open() fails on a socket with an unclear error, so a socket is reported here.
    if (::stat(m_path.c_str(), &facts) == 0 && S_ISSOCK(facts.st_mode))
        throw Error(m_path, "is not a regular file but a socket", "name a file");
    m_descriptor = ::open(m_path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (m_descriptor < 0 || ::fstat(m_descriptor, &facts) != 0)
        throw Error(m_path, "cannot be read: " + faultText(errno), {});
    try {
        if (S_ISDIR(facts.st_mode))
            throw Error(m_path, "is a folder, not a file", {});
        if (S_ISREG(facts.st_mode)) {
            m_size = static_cast<std::uint64_t>(facts.st_size);
            return;
        }
        if (accepted == Kind::File)
            throw Error(m_path, std::string("is not a regular file but ") + kindOfFile(facts.st_mode), "name a file");
        if (S_ISFIFO(facts.st_mode)) {
            m_ahead.resize(1 << 16);
            const ssize_t got = ::read(m_descriptor, m_ahead.data(), m_ahead.size());
            if (got == 0)
                throw Error(m_path, "is a pipe without a writer, not a regular file", "name a file");
            m_ahead.resize(std::max<ssize_t>(got, 0));
        }
        ::fcntl(m_descriptor, F_SETFL, ::fcntl(m_descriptor, F_GETFL) & ~O_NONBLOCK);
    } catch (...) {
        ::close(m_descriptor);
        throw;
    }
}

InputFile::InputFile(InputFile&& other) noexcept
    : m_path(std::move(other.m_path)), m_ahead(std::move(other.m_ahead)),
      m_descriptor(std::exchange(other.m_descriptor, -1)), m_size(other.m_size)
{
}

InputFile::~InputFile()
{
    if (m_descriptor >= 0)
        ::close(m_descriptor);
}

std::size_t InputFile::read(char* to, std::size_t size)
{
    std::size_t done = std::min(size, m_ahead.size());
    m_ahead.copy(to, done);
    m_ahead.erase(0, done);
    while (done < size) {
        const ssize_t got = ::read(m_descriptor, to + done, std::min<std::size_t>(size - done, 1 << 30));
        if (got == 0)
            break;
        if (got > 0)
            done += got;
        else if (errno != EINTR)
            throw Error(m_path, "cannot be read to its end: " + faultText(errno), {});
    }
    return done;
}

void InputFile::seek(std::uint64_t offset)
{
    m_ahead.clear();
    if (::lseek(m_descriptor, static_cast<off_t>(offset), SEEK_SET) < 0)
        throw Error(m_path, "cannot be read at " + std::to_string(offset) + ": " + faultText(errno), {});
}

bool InputFile::readLine(std::string& line)
{
    line.clear();
    for (;;) {
        const std::size_t end = m_ahead.find('\n');
        line.append(m_ahead, 0, end);
        if (end != std::string::npos) {
            m_ahead.erase(0, end + 1);
            return true;
        }
        m_ahead.clear();
        std::string piece(1 << 12, '\0');
        piece.resize(read(piece.data(), piece.size()));
        if (piece.empty())
            return !line.empty();
        m_ahead = std::move(piece);
    }
}

int InputFile::release()
{
    return std::exchange(m_descriptor, -1);
}

bool pathExists(const std::string& path)
{
    struct stat facts {};
    return ::stat(path.c_str(), &facts) == 0;
}

std::string beginningOf(const std::string& path, std::size_t most)
try {
    InputFile file(path);
    std::string text(most, '\0');
    text.resize(file.read(text.data(), text.size()));
    return text;
} catch (const Error&) {
    return {};
}

bool isDatabase(const std::string& path)
{
    return beginningOf(path, 15) == "SQLite format 3";
}

} // namespace pipewright
