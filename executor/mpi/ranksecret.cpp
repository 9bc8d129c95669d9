// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/mpi/ranksecret.h"

#include "core/base/diagnostic.h"
#include "executor/mpi/rankproof.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pipewright {

namespace {

std::filesystem::path secretFile(const EnvironmentLookup& lookup)
{
    if (const char* state = lookup("XDG_STATE_HOME"); state && *state == '/')
        return std::filesystem::path(state) / "pipewright" / "rank-secret";
    const char* home = lookup("HOME");
    if (!home || *home != '/')
        throw Error(rankSecretVariable, "is not set, and there is no home folder to keep a secret in",
                    "set it to the same 16 to 64 characters for all processes of the run");
    return std::filesystem::path(home) / ".local" / "state" / "pipewright" / "rank-secret";
}

[[noreturn]] void cannotKeep(const std::filesystem::path& file, const std::string& why)
{
    throw Error(file.string(), why,
                fmt::format("set {} to the same 16 to 64 characters for all processes of the run", rankSecretVariable));
}

/// Empty when there is no such file.
std::string readSecret(const std::filesystem::path& file)
{
    const int opened = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (opened < 0 && errno == ENOENT)
        return {};
    if (opened < 0)
        cannotKeep(file, std::string("cannot be read: ") + std::strerror(errno));
    struct stat status {};
    std::array<char, longestRankSecret + 1> text{};
    const bool own = fstat(opened, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid()
                     && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
    const ssize_t length = own ? read(opened, text.data(), text.size()) : -1;
    close(opened);
    if (!own)
        cannotKeep(file, "is not a file that only this user can read, so it can hold no secret");
    if (length != static_cast<ssize_t>(longestRankSecret))
        cannotKeep(file, "does not hold the 64 digits that were written to it; remove it");
    return {text.data(), longestRankSecret};
}

/// The file appears under its name only when complete, since others may look at the same time.
void makeSecret(const std::filesystem::path& file)
{
    std::error_code failure;
    std::filesystem::create_directories(file.parent_path(), failure);
    std::string temporary = file.string() + "-XXXXXX";
    const int made = mkstemp(temporary.data()); // readable by this user only
    if (made < 0)
        cannotKeep(file, std::string("cannot be made: ") + std::strerror(errno));
    const std::string digits = freshSecret();
    const bool written = write(made, digits.data(), digits.size()) == static_cast<ssize_t>(digits.size());
    const bool named = written && (link(temporary.c_str(), file.c_str()) == 0 || errno == EEXIST);
    const int why = errno;
    close(made);
    unlink(temporary.c_str());
    if (!named)
        cannotKeep(file, std::string("cannot be made: ") + std::strerror(why));
}

} // namespace

std::string freshSecret()
{
    std::string digits;
    for (const unsigned char byte : freshNonce())
        digits += fmt::format("{:02x}", byte);
    return digits;
}

std::string rankSecret(const EnvironmentLookup& lookup)
{
    if (const char* given = lookup(rankSecretVariable)) {
        const std::string secret = given;
        if (secret.size() < shortestRankSecret || secret.size() > longestRankSecret)
            throw Error(rankSecretVariable, fmt::format("has {} characters", secret.size()),
                        "use 16 to 64, the same for all processes of the run");
        return secret;
    }
    const std::filesystem::path file = secretFile(lookup);
    if (std::string known = readSecret(file); !known.empty())
        return known;
    makeSecret(file);
    return readSecret(file);
}

} // namespace pipewright
