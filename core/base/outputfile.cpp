// SPDX-License-Identifier: GPL-3.0-or-later
// Write beside, fsync, rename, fsync the folder. POSIX record locks on a byte beyond the file's end keep two writers
// apart.
#include "core/base/outputfile.h"

#include "core/base/diagnostic.h"
#include "core/base/ownmark.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pipewright {

namespace {

namespace fs = std::filesystem;

/// The locked byte, beyond every file's end and far from SQLite's lock bytes, so that readers are not blocked.
constexpr off_t lockByte = off_t{1} << 62;

std::string reason(int error)
{
    return std::system_category().message(error);
}

/// The hint for an error; says that an existing file is unchanged.
std::string remedy(int error, bool hadFile)
{
    const std::string kept = hadFile ? "; the file that was there is as it was" : "";
    switch (error) {
    case EFBIG: return "raise the limit on the size of files (ulimit -f)" + kept;
    case ENOSPC:
    case EDQUOT: return "free some space, or write to another place" + kept;
    case EROFS:
    case EACCES:
    case EPERM: return "write to a folder that may be written to" + kept;
    default: return hadFile ? "the file that was there is as it was" : "";
    }
}

bool isThere(const std::string& path)
{
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0;
}

[[noreturn]] void refuseExisting(const std::string& path)
{
    throw Error(path, "the file exists already", "name another file, or pass --force to replace it");
}

[[noreturn]] void refuseBusy(const std::string& path)
{
    throw Error(path, "the file is being written by a process that is still running",
                "wait until it ends, end it, or name another file");
}

void requireRegular(const std::string& path, fs::file_type type)
{
    const char* hint = "name a regular file: it is written beside its place and renamed when it is whole";
    switch (type) {
    case fs::file_type::regular:
    case fs::file_type::not_found: return;
    case fs::file_type::directory: throw Error(path, "is a folder, not a file", "add a file name");
    case fs::file_type::fifo: throw Error(path, "is a pipe, not a file", hint);
    case fs::file_type::socket: throw Error(path, "is a socket, not a file", hint);
    case fs::file_type::block:
    case fs::file_type::character: throw Error(path, "is a device, not a file", hint);
    default: throw Error(path, "is no regular file", hint);
    }
}

/// Permissions of the replaced file, or 0666 without the umask.
mode_t permissionsFor(const std::string& target)
{
    struct stat status {};
    if (::stat(target.c_str(), &status) == 0)
        return status.st_mode & 07777;
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return 0666 & ~mask;
}

/// An open file; closed at the end. Closing drops every POSIX lock that this process has on the file, SQLite's too:
/// nothing may be open on it through SQLite then.
class Descriptor {
public:
    explicit Descriptor(int descriptor) : m_descriptor(descriptor) {}
    Descriptor(Descriptor&& other) noexcept : m_descriptor(std::exchange(other.m_descriptor, -1)) {}
    ~Descriptor()
    {
        if (m_descriptor >= 0)
            ::close(m_descriptor);
    }
    operator int() const { return m_descriptor; }

private:
    int m_descriptor;
};

enum class Locking { Done, Held, Impossible };

/// Held: by another process. Impossible: on file systems without locks.
Locking tryLock(int descriptor, short kind)
{
    struct flock range {};
    range.l_type = kind;
    range.l_whence = SEEK_SET;
    range.l_start = lockByte;
    range.l_len = 1;
    if (::fcntl(descriptor, F_OFD_SETLK, &range) == 0)
        return Locking::Done;
    return errno == EAGAIN || errno == EACCES ? Locking::Held : Locking::Impossible;
}

bool isStill(int descriptor, const std::string& path)
{
    struct stat mine {
    }, there{};
    return ::fstat(descriptor, &mine) == 0 && ::lstat(path.c_str(), &there) == 0 && mine.st_dev == there.st_dev
           && mine.st_ino == there.st_ino;
}

/// Opens and locks the file to be replaced. Below 0: it does not exist, or another file took its place meanwhile.
Descriptor lockExisting(const std::string& path, const std::string& target)
{
    constexpr int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    short kind = F_WRLCK;
    int opened = ::open(target.c_str(), O_RDWR | flags);
    if (opened < 0 && (errno == EACCES || errno == EROFS || errno == EPERM)) {
        kind = F_RDLCK; // writers hold a write lock
        opened = ::open(target.c_str(), O_RDONLY | flags);
    }
    Descriptor descriptor(opened);
    if (descriptor < 0) {
        if (errno == ENOENT)
            return descriptor;
        throw Error(path, "cannot be replaced: " + reason(errno), remedy(errno, true));
    }
    if (tryLock(descriptor, kind) == Locking::Held)
        refuseBusy(path);
    return isStill(descriptor, target) ? std::move(descriptor) : Descriptor(-1);
}

constexpr std::string_view unfinished = ".unfinished-"; ///< and a mark (ownmark.h), behind the name of the target

/// Removes what killed processes left of this file: temporary files with our mark and without a lock.
void removeLeftovers(const std::string& target, const std::vector<std::string>& companions)
{
    const fs::path folder = fs::path(target).parent_path();
    const std::string beginning = fs::path(target).filename().string() + std::string(unfinished);
    std::error_code error;
    std::vector<std::string> found;
    for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end; !error && entry != end;
         entry.increment(error))
        if (const std::string name = entry->path().filename().string(); name.starts_with(beginning))
            found.push_back((folder / name).string());
    for (const std::string& path : found) {
        const Descriptor left(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
        if (left < 0 || path != markedName((folder / beginning).string(), left)
            || tryLock(left, F_WRLCK) != Locking::Done || !isStill(left, path))
            continue;
        ::unlink(path.c_str());
        for (const std::string& ending : companions)
            ::unlink((path + ending).c_str());
    }
}

/// Files that were begun. A signal handler can only reach objects of static lifetime; a file that finds no place stays
/// for the next writer to remove.
std::array<std::atomic<const OutputFile*>, 16> begun;
std::atomic<pid_t> beginner = 0; ///< a forked child, which has not called exec yet, removes nothing
static_assert(std::atomic<const OutputFile*>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free);

void remember(const OutputFile* file)
{
    beginner = ::getpid();
    std::any_of(begun.begin(), begun.end(), [file](std::atomic<const OutputFile*>& place) {
        const OutputFile* free = nullptr;
        return place.compare_exchange_strong(free, file);
    });
}

void forget(const OutputFile* file)
{
    for (std::atomic<const OutputFile*>& place : begun) {
        const OutputFile* own = file;
        place.compare_exchange_strong(own, nullptr);
    }
}

} // namespace

void removeUnfinishedFiles() noexcept
{
    if (beginner != ::getpid())
        return;
    for (const std::atomic<const OutputFile*>& place : begun)
        if (const OutputFile* file = place)
            for (const std::string& path : file->m_onSignal)
                ::unlink(path.c_str());
}

std::string outputTarget(const std::string& path)
{
    std::error_code error;
    requireRegular(path, fs::status(path, error).type());
    fs::path target = path;
    // Link by link: the target of the last one need not exist.
    for (int links = 0; fs::is_symlink(fs::symlink_status(target, error)); ++links) {
        const fs::path next = fs::read_symlink(target, error);
        if (error || links == 40)
            throw Error(path, "is a link that leads nowhere", "name the file itself");
        target = next.is_absolute() ? next : target.parent_path() / next;
    }
    requireRegular(path, fs::symlink_status(target, error).type());
    return target.string();
}

void checkOutput(const std::string& path, bool overwrite)
{
    const std::string target = outputTarget(path);
    if (!isThere(target))
        return;
    if (!overwrite)
        refuseExisting(path);
    lockExisting(path, target);
}

OutputFile::OutputFile(std::string path, bool overwrite, std::vector<std::string> companions)
    : m_path(std::move(path)), m_companions(std::move(companions)), m_overwrite(overwrite)
{
    checkOutput(m_path, m_overwrite);
    m_target = outputTarget(m_path);
    for (const std::string& ending : m_companions)
        if (!m_overwrite && isThere(m_target + ending))
            throw Error(m_path, m_path + ending + " of an earlier file of this name is left over",
                        "remove " + m_path + ending + ", name another file, or pass --force");
    removeLeftovers(m_target, m_companions);
    const std::string beginning = m_target + std::string(unfinished);
    m_temporary = beginning + "XXXXXX";
    m_descriptor = ::mkostemp(m_temporary.data(), O_CLOEXEC);
    if (m_descriptor < 0) {
        const int error = errno;
        throw Error(m_path, "cannot be written: " + reason(error),
                    error == ENOSPC || error == EDQUOT ? remedy(error, isThere(m_target))
                                                       : "choose a folder that exists and may be written to");
    }
    tryLock(m_descriptor, F_WRLCK); // before the mark: no other process takes it for a leftover
    m_temporary = markAsOwn(m_temporary, beginning, m_descriptor);
    m_onSignal.push_back(m_temporary);
    for (const std::string& ending : m_companions)
        m_onSignal.push_back(m_temporary + ending);
    remember(this);
}

OutputFile::~OutputFile()
{
    forget(this);
    if (!m_temporary.empty()) {
        ::unlink(m_temporary.c_str());
        for (const std::string& ending : m_companions)
            ::unlink((m_temporary + ending).c_str());
    }
    ::close(m_descriptor);
}

void OutputFile::fail(int error) const
{
    throw Error(m_path, "cannot be written: " + reason(error), remedy(error, isThere(m_target)));
}

void OutputFile::write(std::string_view content)
{
    while (!content.empty()) {
        const ssize_t written = ::write(m_descriptor, content.data(), content.size());
        if (written >= 0)
            content.remove_prefix(written);
        else if (errno != EINTR)
            fail(errno);
    }
}

void OutputFile::keep()
{
    if (::fchmod(m_descriptor, permissionsFor(m_target)) != 0 || ::fsync(m_descriptor) != 0)
        fail(errno);
    const auto removeCompanions = [this] {
        for (const std::string& ending : m_companions)
            if (::unlink((m_target + ending).c_str()) != 0 && errno != ENOENT)
                throw Error(m_path + ending, "cannot be removed: " + reason(errno), remedy(errno, isThere(m_target)));
    };
    for (;;) {
        // link() never replaces a file that appeared meanwhile; not every file system has it.
        if (!isThere(m_target)) {
            removeCompanions();
            if (::link(m_temporary.c_str(), m_target.c_str()) == 0) {
                ::unlink(m_temporary.c_str());
                break;
            }
            if (errno == EEXIST)
                continue;
            if (::rename(m_temporary.c_str(), m_target.c_str()) != 0)
                fail(errno);
            break;
        }
        if (!m_overwrite)
            refuseExisting(m_path);
        outputTarget(m_path); // still a file?
        const Descriptor old = lockExisting(m_path, m_target);
        if (old < 0)
            continue;
        removeCompanions(); // they would be read with the new file
        if (::rename(m_temporary.c_str(), m_target.c_str()) != 0)
            fail(errno);
        break;
    }
    forget(this);
    m_temporary.clear();
    // The rename must survive a crash as well. File systems that cannot sync a folder need no sync.
    const std::string folder = fs::path(m_target).parent_path().string();
    const Descriptor names(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (names >= 0 && ::fsync(names) != 0 && errno != EINVAL && errno != ENOTSUP)
        throw Error(m_path, "was written, but its folder could not be made durable: " + reason(errno));
}

bool OutputFile::stillThere() const
{
    return isStill(m_descriptor, m_target);
}

} // namespace pipewright
