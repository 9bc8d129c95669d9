// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/ownmark.h"

#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>

namespace pipewright {

std::string markedName(const std::string& beginning, int descriptor)
{
    struct stat facts {};
    fstat(descriptor, &facts); // an open file has facts
    return beginning + std::to_string(facts.st_ino);
}

std::string markAsOwn(const std::string& path, const std::string& beginning, int descriptor)
{
    std::string marked = markedName(beginning, descriptor);
    // Without a mark it is still a temporary file, which nobody cleans up after a killed process.
    return renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, marked.c_str(), RENAME_NOREPLACE) == 0 ? marked : path;
}

} // namespace pipewright
