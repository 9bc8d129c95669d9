// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/textfile.h"

#include "core/base/diagnostic.h"
#include "core/base/outputfile.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace pipewright {

namespace {

namespace fs = std::filesystem;

} // namespace

std::string readTextFile(const std::string& path)
{
    std::error_code ignored;
    if (fs::is_directory(path, ignored))
        throw Error(path, "is a folder, not a file", {});
    errno = 0;
    std::ifstream stream(path, std::ios::binary);
    if (!stream)
        throw Error(path, "cannot be read: " + std::system_category().message(errno != 0 ? errno : ENOENT), {});
    std::ostringstream text;
    text << stream.rdbuf();
    if (stream.bad())
        throw Error(path, "cannot be read to its end", {});
    return std::move(text).str();
}

void writeFileAtomically(const std::string& path, std::string_view content, bool overwrite)
{
    OutputFile file(path, overwrite);
    file.write(content);
    file.keep();
}

} // namespace pipewright
