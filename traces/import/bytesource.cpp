// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/import/bytesource.h"

#include "core/base/diagnostic.h"
#include "core/base/inputfile.h"
#include "core/base/units.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <zlib.h>

namespace pipewright {

namespace {

/// Uses zlib's reader, which passes uncompressed files through.
class File : public ByteSource {
public:
    File(std::string path, std::uint64_t most) : m_path(std::move(path)), m_most(most), m_left(most)
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
        const std::size_t read = got > 0 ? static_cast<std::size_t>(got) : 0;
        if (gzdirect(m_file) == 0 && read > m_left)
            throw Error(
                m_path, "takes more than " + formatSize(static_cast<Bytes>(m_most)) + " when it is decompressed",
                "if it is what you expect, raise the limit: pipewright import FILE --size-limit 64GiB -o TRACE");
        m_left -= std::min<std::uint64_t>(read, m_left);
        return read;
    }
    double fraction() const override
    {
        return m_size > 0 ? std::min(1.0, static_cast<double>(gzoffset(m_file)) / m_size) : 0;
    }
    std::string complaint() const override { return m_complaint; }

private:
    std::string m_path, m_complaint;
    std::uint64_t m_most, m_left; ///< bytes after decompression
    gzFile m_file = nullptr;
    double m_size = 0;
};

/// Reads and decompresses on a thread of its own while the caller parses earlier pieces.
class ReadAhead : public ByteSource {
public:
    explicit ReadAhead(std::unique_ptr<ByteSource> from) : m_from(std::move(from))
    {
        m_thread = std::thread([this] { readAll(); });
    }
    ReadAhead(const ReadAhead&) = delete;
    ReadAhead& operator=(const ReadAhead&) = delete;
    ~ReadAhead() override
    {
        {
            const std::lock_guard lock(m_mutex);
            m_stop = true;
        }
        m_changed.notify_all();
        m_thread.join();
    }

    std::size_t read(char* to, std::size_t size) override
    {
        if (m_taken == m_piece.size()) {
            std::unique_lock lock(m_mutex);
            m_changed.wait(lock, [this] { return !m_ready.empty() || m_ended; });
            if (m_ready.empty()) {
                if (m_failure)
                    std::rethrow_exception(std::exchange(m_failure, nullptr));
                return 0;
            }
            m_piece = std::move(m_ready.front());
            m_ready.pop_front();
            m_taken = 0;
            m_changed.notify_all();
        }
        const std::size_t got = m_piece.copy(to, size, m_taken);
        m_taken += got;
        return got;
    }
    double fraction() const override { return m_fraction; }
    std::string complaint() const override
    {
        const std::lock_guard lock(m_mutex);
        return m_ended ? m_from->complaint() : std::string();
    }

private:
    static constexpr std::size_t pieceSize = 1 << 20, mostPieces = 4;

    void readAll()
    {
        std::exception_ptr failure;
        try {
            for (;;) {
                std::string piece(pieceSize, '\0');
                piece.resize(m_from->read(piece.data(), piece.size()));
                m_fraction = m_from->fraction();
                std::unique_lock lock(m_mutex);
                m_changed.wait(lock, [this] { return m_stop || m_ready.size() < mostPieces; });
                if (m_stop || piece.empty())
                    break;
                m_ready.push_back(std::move(piece));
                m_changed.notify_all();
            }
        } catch (...) {
            failure = std::current_exception();
        }
        const std::lock_guard lock(m_mutex);
        m_failure = failure;
        m_ended = true;
        m_changed.notify_all();
    }

    std::unique_ptr<ByteSource> m_from; ///< used by the thread until m_ended
    std::string m_piece;                ///< used by the reader
    std::size_t m_taken = 0;            ///< bytes of m_piece that were returned
    std::atomic<double> m_fraction{0};
    mutable std::mutex m_mutex; ///< guards what follows
    std::condition_variable m_changed;
    std::deque<std::string> m_ready;
    std::exception_ptr m_failure;
    bool m_ended = false, m_stop = false;
    std::thread m_thread;
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

std::unique_ptr<ByteSource> openBytes(const std::string& path, std::uint64_t most)
{
    auto file = std::make_unique<File>(path, most);
    // On one core a second thread would gain nothing.
    if (std::thread::hardware_concurrency() < 2)
        return file;
    return std::make_unique<ReadAhead>(std::move(file));
}
std::unique_ptr<ByteSource> bytesOf(std::string_view text)
{
    return std::make_unique<Text>(text);
}

} // namespace pipewright
