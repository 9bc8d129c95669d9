// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/textdata.h"

#include "core/base/diagnostic.h"
#include "core/base/inputfile.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace pipewright {
namespace {

namespace fs = std::filesystem;

bool isText(const fs::path& path)
{
    static constexpr std::array<std::string_view, 13> endings{".h",  ".hpp", ".c",   ".cc",   ".cpp",   ".cu", ".cuh",
                                                              ".py", ".md",  ".txt", ".json", ".cmake", ".sh"};
    return std::find(endings.begin(), endings.end(), path.extension().string()) != endings.end();
}

bool isHidden(const fs::path& path)
{
    return path.filename().string().starts_with('.');
}

std::vector<fs::path> textFilesBelow(const fs::path& folder)
{
    std::vector<fs::path> files;
    for (fs::recursive_directory_iterator entry(folder), end; entry != end; ++entry) {
        if (isHidden(entry->path()) || entry->is_symlink()) {
            if (entry->is_directory())
                entry.disable_recursion_pending();
        } else if (entry->is_regular_file() && isText(entry->path())) {
            files.push_back(entry->path());
        }
    }
    // The order of a folder's entries differs between file systems; the order of their names does not.
    std::sort(files.begin(), files.end(),
              [](const fs::path& a, const fs::path& b) { return a.generic_string() < b.generic_string(); });
    return files;
}

void appendFile(const fs::path& path, std::size_t limit, std::string& text)
{
    InputFile file(path.string(), InputFile::Kind::Stream);
    const std::size_t before = text.size();
    text.resize(limit);
    text.resize(before + file.read(text.data() + before, limit - before));
}

} // namespace

TextData TextData::fromPath(const fs::path& path, const ModelShape& shape, std::uint64_t seed)
{
    const std::string where = path.string();
    std::string text;
    try {
        if (!fs::exists(path))
            throw Error(where, "there is no such file or folder", "name a text file or a folder of source files");
        if (fs::is_directory(path)) {
            const std::vector<fs::path> files = textFilesBelow(path);
            if (files.empty())
                throw Error(where, "the folder holds no text or source files",
                            "name a folder with .txt, .md, .cpp or .h files");
            for (const fs::path& file : files) {
                if (text.size() < byteLimit)
                    appendFile(file, byteLimit, text);
            }
        } else {
            appendFile(path, byteLimit, text);
        }
    } catch (const fs::filesystem_error& error) {
        throw Error(where, "the text cannot be read: " + error.code().message(), "check its permissions");
    }
    return fromText(std::move(text), where, shape, seed);
}

TextData TextData::fromText(std::string text, std::string source, const ModelShape& shape, std::uint64_t seed)
{
    const std::size_t needed = std::size_t(shape.sequence) + 1;
    if (text.empty())
        throw Error(source, "there is no text to train on", "give at least " + std::to_string(needed) + " bytes");
    if (text.size() < needed)
        throw Error(source,
                    "the text has " + std::to_string(text.size()) + " bytes, too short for sequences of "
                        + std::to_string(shape.sequence),
                    "give at least " + std::to_string(needed) + " bytes or a model with shorter sequences");
    for (const char character : text)
        if (const int token = static_cast<unsigned char>(character); token >= shape.vocabulary)
            throw Error(source,
                        "byte " + std::to_string(token) + " lies outside the model's vocabulary of "
                            + std::to_string(shape.vocabulary),
                        "use a vocabulary of 256");
    TextData data;
    data.m_windows = TokenWindows(text.size(), shape, seed);
    data.m_text = std::move(text);
    data.m_source = std::move(source);
    return data;
}

void TextData::sample(std::int64_t step, int microbatch, std::span<std::int32_t> tokens,
                      std::span<std::int32_t> targets) const
{
    m_windows.sample(step, microbatch, tokens, targets, [this](std::size_t i) { return tokenAt(i); });
}

void TextData::row(std::uint64_t random, std::span<std::int32_t> tokens, std::span<std::int32_t> targets) const
{
    m_windows.row(random, tokens, targets, [this](std::size_t i) { return tokenAt(i); });
}

} // namespace pipewright
