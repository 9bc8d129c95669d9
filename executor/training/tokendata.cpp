// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/tokendata.h"

#include "core/base/diagnostic.h"
#include "core/base/inputfile.h"

#include <fmt/format.h>

#include <sys/mman.h>

namespace pipewright {

/// A whole file in memory, read only.
class TokenData::Mapping {
public:
    explicit Mapping(const std::string& path)
    {
        const InputFile file(path);
        m_size = static_cast<std::size_t>(file.size());
        void* data = m_size > 0 ? ::mmap(nullptr, m_size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0) : MAP_FAILED;
        if (data == MAP_FAILED)
            throw Error(path, m_size == 0 ? "the file is empty" : "the file cannot be read", "name a file of tokens");
        m_data = static_cast<const unsigned char*>(data);
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping() { ::munmap(const_cast<unsigned char*>(m_data), m_size); }

    const unsigned char* data() const { return m_data; }
    std::size_t size() const { return m_size; }

private:
    const unsigned char* m_data = nullptr;
    std::size_t m_size = 0;
};

bool TokenData::isTokenFile(const std::filesystem::path& path)
{
    const std::string ending = path.extension().string();
    return ending == ".bin" || ending == ".u16" || ending == ".u32";
}

TokenData TokenData::fromFile(const std::filesystem::path& path, const ModelShape& shape, std::uint64_t seed,
                              int microbatches)
{
    TokenData whole;
    whole.m_microbatches = microbatches;
    whole.m_source = path.string();
    whole.m_width = path.extension() == ".u32" ? 4 : 2;
    whole.m_file = std::make_shared<const Mapping>(whole.m_source);
    const std::size_t bytes = whole.m_file->size(), width = static_cast<std::size_t>(whole.m_width);
    if (bytes % width != 0)
        throw Error(whole.m_source, fmt::format("{} bytes are not a number of tokens of {} bytes", bytes, width),
                    "name files of two-byte tokens .u16 or .bin, and of four-byte tokens .u32");
    return whole.range(0, bytes / width, whole.m_source, shape, seed);
}

TokenData TokenData::range(std::size_t first, std::size_t count, std::string source, const ModelShape& shape,
                           std::uint64_t seed) const
{
    if (count <= static_cast<std::size_t>(shape.sequence))
        throw Error(source, fmt::format("{} tokens are too few for sequences of {}", count, shape.sequence),
                    "give more of them, or a model with shorter sequences");
    TokenData part = *this;
    part.m_first = first;
    part.m_count = count;
    part.m_source = std::move(source);
    part.m_vocabulary = shape.vocabulary;
    part.m_windows = TokenWindows::shuffled(count, shape, seed, m_microbatches);
    return part;
}

TokenData TokenData::part(const ModelShape& shape, bool heldBack, std::uint64_t seed) const
{
    const std::size_t cut = m_count - m_count / 10;
    return heldBack ? range(m_first + cut, m_count - cut, m_source + ", held back", shape, seed)
                    : range(m_first, cut, m_source, shape, seed);
}

std::int32_t TokenData::tokenAt(std::size_t number) const
{
    const unsigned char* bytes = m_file->data() + (m_first + number) * static_cast<std::size_t>(m_width);
    std::uint32_t token = 0;
    for (int i = m_width; i-- > 0;)
        token = token << 8 | bytes[i];
    if (token >= m_vocabulary)
        throw Error(m_source,
                    fmt::format("token {} at place {} lies outside the model's vocabulary of {}", token,
                                m_first + number, m_vocabulary),
                    m_width == 2 ? "use the model of these tokens; four-byte tokens are in files named .u32"
                                 : "use the model of these tokens; two-byte tokens are in files named .u16 or .bin");
    return static_cast<std::int32_t>(token);
}

void TokenData::sample(std::int64_t step, int microbatch, std::span<std::int32_t> tokens,
                       std::span<std::int32_t> targets) const
{
    m_windows.sample(step, microbatch, tokens, targets, [this](std::size_t number) { return tokenAt(number); });
}

void TokenData::row(std::uint64_t random, std::span<std::int32_t> tokens, std::span<std::int32_t> targets) const
{
    m_windows.row(random, tokens, targets, [this](std::size_t number) { return tokenAt(number); });
}

} // namespace pipewright
