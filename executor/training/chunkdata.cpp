// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/chunkdata.h"

#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"
#include "core/base/inputfile.h"
#include "executor/stage/counterrandom.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cctype>
#include <map>

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t byteFeatures = 256;
constexpr std::size_t leastChunks = 20; ///< per kind, so that its held-back tenth has a few

std::string kindOf(const fs::path& path)
{
    std::string ending = path.extension().string();
    if (ending.size() < 2)
        return "plain";
    ending.erase(0, 1);
    std::transform(ending.begin(), ending.end(), ending.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return ending;
}

std::vector<fs::path> filesBelow(const fs::path& folder)
{
    std::vector<fs::path> files;
    for (fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied), end;
         entry != end; ++entry) {
        if (entry->path().filename().string().starts_with('.') || entry->is_symlink()) {
            if (entry->is_directory())
                entry.disable_recursion_pending();
        } else if (entry->is_regular_file()) {
            files.push_back(entry->path());
        }
    }
    std::sort(files.begin(), files.end(),
              [](const fs::path& a, const fs::path& b) { return a.generic_string() < b.generic_string(); });
    return files;
}

void appendFile(const fs::path& path, std::string& bytes)
{
    // A file that cannot be read is left out of the data.
    bytes += beginningOf(path.string(), ChunkData::byteLimit - bytes.size());
}

} // namespace

ChunkData ChunkData::fromFolder(const fs::path& folder, const ModelShape& shape, std::uint64_t seed)
{
    const std::string where = folder.string();
    std::map<std::string, std::string> byKind;
    try {
        if (!fs::is_directory(folder))
            throw Error(where, "is no folder, and a classifier tells the files of one apart by their kind",
                        "name a folder with files of several endings");
        for (const fs::path& file : filesBelow(folder))
            if (std::string& bytes = byKind[kindOf(file)]; bytes.size() < byteLimit)
                appendFile(file, bytes);
    } catch (const fs::filesystem_error& error) {
        throw Error(where, "the folder cannot be read: " + error.code().message(), "check its permissions");
    }
    std::vector<Kind> kinds;
    for (auto& [name, bytes] : byKind)
        if (bytes.size() >= leastChunks * (static_cast<std::size_t>(shape.sequence) + 1))
            kinds.push_back({name, std::move(bytes)});
    std::stable_sort(kinds.begin(), kinds.end(),
                     [](const Kind& a, const Kind& b) { return a.bytes.size() > b.bytes.size(); });
    const auto classes = static_cast<std::size_t>(shape.vocabulary);
    if (kinds.size() < classes) {
        std::vector<std::string> names;
        for (const Kind& kind : kinds)
            names.push_back(kind.name);
        throw Error(where,
                    fmt::format("holds {} kinds of files with enough bytes{}{}, the model tells {} apart", kinds.size(),
                                names.empty() ? "" : ": ", joined(names, ", "), classes),
                    "name a folder with more kinds of files, or use a model with fewer classes (vocabulary)");
    }
    kinds.resize(classes);
    return fromKinds(std::move(kinds), where, shape, seed);
}

ChunkData ChunkData::fromKinds(std::vector<Kind> kinds, std::string source, const ModelShape& shape, std::uint64_t seed)
{
    if (kinds.size() != static_cast<std::size_t>(shape.vocabulary))
        throw Error(source, fmt::format("{} kinds of files for a model of {} classes", kinds.size(), shape.vocabulary),
                    "give as many as vocabulary says");
    for (const Kind& kind : kinds)
        if (kind.bytes.size() < static_cast<std::size_t>(shape.sequence) + 1)
            throw Error(source,
                        fmt::format("the {} files have {} bytes, too few for chunks of {}", kind.name,
                                    kind.bytes.size(), shape.sequence),
                        "give more of them, or use a model with shorter chunks (sequence)");
    ChunkData data;
    data.m_kinds = std::move(kinds);
    data.m_source = std::move(source);
    data.m_length = static_cast<std::size_t>(shape.sequence);
    data.m_pairs = static_cast<std::uint32_t>(shape.features) - byteFeatures;
    data.m_seed = seed;
    return data;
}

ChunkData ChunkData::part(const ModelShape& shape, bool heldBack, std::uint64_t seed) const
{
    std::vector<Kind> kinds = m_kinds;
    for (Kind& kind : kinds) {
        const std::size_t cut = kind.bytes.size() - kind.bytes.size() / 10;
        kind.bytes = heldBack ? kind.bytes.substr(cut) : kind.bytes.substr(0, cut);
    }
    return fromKinds(std::move(kinds), heldBack ? m_source + ", held back" : m_source, shape, seed);
}

void ChunkData::row(std::uint64_t random, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const
{
    assert(inputs.size() == 2 * m_length && targets.size() == 1);
    const std::uint64_t kind = random % m_kinds.size();
    const std::string& bytes = m_kinds[kind].bytes;
    const std::size_t begin = random / m_kinds.size() % (bytes.size() - m_length);
    targets[0] = static_cast<std::int32_t>(kind);
    for (std::size_t i = 0; i < m_length; ++i) {
        const auto first = static_cast<unsigned char>(bytes[begin + i]),
                   second = static_cast<unsigned char>(bytes[begin + i + 1]);
        inputs[i] = first;
        // Knuth's multiplicative hash of the pair, its upper bits.
        const std::uint32_t pair = (std::uint32_t{first} << 8 | second) * 2654435761u >> 8;
        inputs[m_length + i] = static_cast<std::int32_t>(byteFeatures + pair % m_pairs);
    }
}

void ChunkData::sample(std::int64_t step, int microbatch, std::span<std::int32_t> inputs,
                       std::span<std::int32_t> targets) const
{
    const CounterRandom random(m_seed, "data " + std::to_string(step) + "." + std::to_string(microbatch));
    for (std::size_t r = 0; r < targets.size(); ++r)
        row(random.bits(r), inputs.subspan(r * 2 * m_length, 2 * m_length), targets.subspan(r, 1));
}

} // namespace pipewright
