// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/import/bytesource.h"

#include "core/base/diagnostic.h"
#include "core/base/inputfile.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <zlib.h>

namespace pipewright {

namespace {

/// zlib's reader passes uncompressed files through.
class File : public ByteSource {
public:
    explicit File(std::string path) : m_path(std::move(path))
    {
        InputFile file(m_path);
        m_size = static_cast<double>(file.size());
        m_file = gzdopen(file.descriptor(), "rb");
        if (!m_file)
            throw Error(m_path, std::string("cannot be read: ") + std::strerror(ENOMEM));
        file.release(); // closed with m_file
        gzbuffer(m_file, 1 << 20);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() override { gzclose_r(m_file); }

    std::size_t read(char* to, std::size_t size) override
    {
        if (!m_complaint.empty())
            return 0;
        const int got = gzread(m_file, to, static_cast<unsigned>(std::min<std::size_t>(size, 1u << 30)));
        int code = Z_OK;
        const char* message = gzerror(m_file, &code);
        if (code == Z_ERRNO)
            throw Error(m_path, std::string("cannot be read: ") + std::strerror(errno));
        if (code == Z_BUF_ERROR)
            m_complaint = "the compressed file ends too early";
        else if (code != Z_OK && code != Z_STREAM_END)
            m_complaint = std::string("the compressed file is damaged: ") + message;
        return got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    double fraction() const override
    {
        return m_size > 0 ? std::min(1.0, static_cast<double>(gzoffset(m_file)) / m_size) : 0;
    }
    std::string complaint() const override { return m_complaint; }

private:
    std::string m_path, m_complaint;
    gzFile m_file = nullptr;
    double m_size = 0;
};

class Text : public ByteSource {
public:
    explicit Text(std::string_view text) : m_text(text), m_size(text.size()) {}
    std::size_t read(char* to, std::size_t size) override
    {
        const std::size_t got = m_text.copy(to, size);
        m_text.remove_prefix(got);
        return got;
    }
    double fraction() const override
    {
        return m_size > 0 ? 1 - static_cast<double>(m_text.size()) / static_cast<double>(m_size) : 1;
    }

private:
    std::string_view m_text;
    std::size_t m_size;
};

} // namespace

std::unique_ptr<ByteSource> openBytes(const std::string& path)
{
    return std::make_unique<File>(path);
}
std::unique_ptr<ByteSource> bytesOf(std::string_view text)
{
    return std::make_unique<Text>(text);
}

} // namespace pipewright
