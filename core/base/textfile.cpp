// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/textfile.h"

#include "core/base/diagnostic.h"
#include "core/base/outputfile.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace pipewright {

namespace {

namespace fs = std::filesystem;

/// The largest design that there may be has a tenth of it. Devices and pipes need not end by themselves.
constexpr std::size_t longestText = std::size_t{1} << 30;

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
    std::string text;
    const std::uintmax_t size = fs::is_regular_file(path, ignored) ? fs::file_size(path, ignored) : 0;
    for (std::size_t piece = std::clamp<std::uintmax_t>(ignored ? 0 : size + 1, 1 << 16, longestText + 1); stream;) {
        const std::size_t before = text.size();
        text.resize(std::min(before + piece, longestText + 1));
        stream.read(text.data() + before, static_cast<std::streamsize>(text.size() - before));
        text.resize(before + static_cast<std::size_t>(stream.gcount()));
        if (text.size() > longestText)
            throw Error(path, "goes on after 1 GiB, and no text that can be read is as long",
                        "name a design, a schedule, a model or a table");
        piece = std::max<std::size_t>(1 << 16, text.size()); // a pipe's, whose length is not known
    }
    if (stream.bad())
        throw Error(path, "cannot be read to its end", {});
    return text;
}

void writeFileAtomically(const std::string& path, std::string_view content, bool overwrite)
{
    OutputFile file(path, overwrite);
    file.write(content);
    file.keep();
}

} // namespace pipewright
