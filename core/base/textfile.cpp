// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/textfile.h"

#include "core/base/diagnostic.h"
#include "core/base/inputfile.h"
#include "core/base/outputfile.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace pipewright {

namespace {

/// Ten times the largest possible design. Needed because devices and pipes may never end.
constexpr std::size_t longestText = std::size_t{1} << 30;

} // namespace

std::string readTextFile(const std::string& path)
{
    InputFile file(path, InputFile::Kind::Stream);
    std::string text;
    for (std::size_t piece = std::clamp<std::uint64_t>(file.size() + 1, 1 << 16, longestText + 1);;) {
        const std::size_t before = text.size();
        text.resize(std::min(before + piece, longestText + 1));
        text.resize(before + file.read(text.data() + before, text.size() - before));
        if (text.size() > longestText)
            throw Error(path, "goes on after 1 GiB, and no text that can be read is as long",
                        "name a design, a schedule, a model or a table");
        if (text.size() < before + piece)
            return text;
        piece = std::max<std::size_t>(1 << 16, text.size()); // a pipe's, whose length is not known
    }
}

void writeFileAtomically(const std::string& path, std::string_view content, bool overwrite)
{
    OutputFile file(path, overwrite);
    file.write(content);
    file.keep();
}

} // namespace pipewright
