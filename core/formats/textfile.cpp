// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/formats/textfile.h"

#include "core/base/diagnostic.h"
#include "core/formats/designfile.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pipewright {

namespace {

namespace fs = std::filesystem;

std::string reason(int error)
{
    return std::system_category().message(error);
}

/// What helps, and that nothing was lost: what stood there is replaced in one step or not at all.
std::string remedy(int error, bool hadFile)
{
    const std::string kept = hadFile ? "; the file that was there is as it was" : "";
    switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return "free some space, or write to another place" + kept;
    case EROFS:
    case EACCES:
    case EPERM: return "write to a folder that may be written to" + kept;
    default: return hadFile ? "the file that was there is as it was" : "";
    }
}

// Writes all of it, or returns the error.
int writeAll(int descriptor, std::string_view content)
{
    while (!content.empty()) {
        const ssize_t written = ::write(descriptor, content.data(), content.size());
        if (written < 0) {
            if (errno == EINTR)
                continue;
            return errno;
        }
        content.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
}

[[noreturn]] void refuse(const std::string& path)
{
    throw Error(path, "the file exists already", "use --force to replace it");
}

// A device or pipe cannot be replaced by a file and has nothing to lose: just write to it.
void writeToSpecialFile(const std::string& path, std::string_view content)
{
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0)
        throw Error(path, "cannot be opened: " + reason(errno), {});
    const int error = writeAll(descriptor, content);
    ::close(descriptor);
    if (error != 0)
        throw Error(path, "cannot be written: " + reason(error), {});
}

// The temporary file; removed unless it was renamed.
class Temporary {
public:
    explicit Temporary(const fs::path& target)
    {
        m_path = target.string() + ".XXXXXX";
        m_descriptor = ::mkostemp(m_path.data(), O_CLOEXEC);
        if (m_descriptor < 0) {
            const int error = errno;
            m_path.clear();
            std::error_code ignored;
            const std::string help = error == ENOSPC || error == EDQUOT ? remedy(error, fs::exists(target, ignored)) : "choose a folder that exists and may be written to";
            throw Error(target.string(), "cannot be written: " + reason(error), help);
        }
    }
    Temporary(const Temporary&) = delete;
    Temporary& operator=(const Temporary&) = delete;
    ~Temporary()
    {
        if (m_descriptor >= 0)
            ::close(m_descriptor);
        if (!m_path.empty())
            ::unlink(m_path.c_str());
    }
    int descriptor() const { return m_descriptor; }
    const char* path() const { return m_path.c_str(); }
    int close()
    {
        const int result = ::close(m_descriptor);
        m_descriptor = -1;
        return result == 0 ? 0 : errno;
    }
    void keep() { m_path.clear(); }

private:
    std::string m_path;
    int m_descriptor = -1;
};

// Permissions of the file it replaces, or what the umask leaves of rw for everyone.
mode_t permissionsFor(const fs::path& target)
{
    struct stat status {};
    if (::stat(target.c_str(), &status) == 0)
        return status.st_mode & 07777;
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return 0666 & ~mask;
}

} // namespace

std::string readTextFile(const std::string& path)
{
    std::error_code ignored;
    if (fs::is_directory(path, ignored))
        throw Error(path, "is a folder, not a file", {});
    errno = 0;
    std::ifstream stream(path, std::ios::binary);
    if (!stream)
        throw Error(path, "cannot be read: " + reason(errno != 0 ? errno : ENOENT), {});
    std::ostringstream text;
    text << stream.rdbuf();
    if (stream.bad())
        throw Error(path, "cannot be read to its end", {});
    return std::move(text).str();
}

void writeFileAtomically(const std::string& path, std::string_view content, bool overwrite)
{
    std::error_code error;
    fs::path target = path;
    const fs::file_status status = fs::status(target, error);
    if (fs::is_directory(status))
        throw Error(path, "is a folder, not a file", "add a file name");
    if (fs::exists(status) && !fs::is_regular_file(status)) {
        writeToSpecialFile(path, content);
        return;
    }
    if (fs::exists(status) && !overwrite)
        refuse(path);
    if (fs::is_symlink(fs::symlink_status(target, error))) // replace what it points to, not the link
        target = fs::weakly_canonical(target, error);

    Temporary temporary(target);
    int failed = writeAll(temporary.descriptor(), content);
    if (failed == 0 && (::fchmod(temporary.descriptor(), permissionsFor(target)) != 0 || ::fsync(temporary.descriptor()) != 0))
        failed = errno;
    if (const int closing = temporary.close(); failed == 0)
        failed = closing;
    if (failed != 0)
        throw Error(path, "cannot be written: " + reason(failed), remedy(failed, fs::exists(status)));

    // link() refuses to replace a file that appeared meanwhile; not every file system has it.
    if (!overwrite) {
        if (::link(temporary.path(), target.c_str()) == 0)
            return;
        if (errno == EEXIST)
            refuse(path);
    }
    if (::rename(temporary.path(), target.c_str()) != 0)
        throw Error(path, "cannot be written: " + reason(errno), {});
    temporary.keep();
}

} // namespace pipewright
