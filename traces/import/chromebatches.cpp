// SPDX-License-Identifier: GPL-3.0-or-later
// Batches wait in a queue in the file's order; a state per batch tells which thread works on it. The lock guards the
// queue and the states; a batch itself is used only by the thread that works on it. O(bytes).
#include "traces/import/chromebatches.h"

#include "traces/import/jsonevents.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace pipewright {

namespace {

constexpr std::size_t batchBytes = 1 << 18;
constexpr std::size_t mostEvents = 1024;
constexpr std::size_t mostBatches = 8;   ///< ahead of the caller
constexpr std::ptrdiff_t fewScanned = 2; ///< left for the caller to parse; with more the second thread parses too

} // namespace

struct ChromeBatches::Work {
    struct Place {
        std::size_t begin = 0, size = 0;
        std::int64_t number = 0;
    };
    enum class State : std::uint8_t { Scanned, BeingParsed, Parsed };
    State state = State::Scanned;
    std::string text; ///< the events as a list
    std::vector<Place> places;
    ChromeEventParser parser;              ///< holds strings of the events
    std::deque<ChromeEventParser> parsers; ///< one per event, for batches that do not parse as a list
    std::vector<ChromeEvent*> pointers;
    ChromeBatches::Batch batch;

    void parse();
};

/// Parses the events as one list, which is fast; if that fails, event by event.
void ChromeBatches::Work::parse()
{
    const std::size_t size = text.size();
    text.resize(size + JsonEvents::padding, ' ');
    batch.events.resize(places.size());
    pointers.clear();
    for (std::size_t i = 0; i < places.size(); ++i) {
        ChromeBatches::Numbered& event = batch.events[i];
        event.number = places[i].number;
        event.readable = true;
        pointers.push_back(&event.event);
    }
    if (parser.parseList({text.data(), size}, pointers))
        return;
    while (parsers.size() < places.size())
        parsers.emplace_back();
    for (std::size_t i = 0; i < places.size(); ++i)
        batch.events[i].readable =
            parsers[i].parse({text.data() + places[i].begin, places[i].size}, batch.events[i].event);
}

struct ChromeBatches::Private {
    Private(ByteSource& source, std::string where) : m_source(source), m_events(source, m_report, std::move(where)) {}
    ~Private()
    {
        {
            const std::lock_guard lock(m_mutex);
            m_stop = true;
        }
        m_changed.notify_all();
        if (m_thread.joinable())
            m_thread.join();
    }

    /// Scans the next part of the file, up to a full batch or a member of the top level; null at the end.
    std::unique_ptr<Work> scan()
    {
        std::unique_ptr<Work> work;
        {
            const std::lock_guard lock(m_mutex);
            if (!m_spare.empty()) {
                work = std::move(m_spare.back());
                m_spare.pop_back();
            }
        }
        if (!work)
            work = std::make_unique<Work>();
        work->state = Work::State::Scanned;
        work->text = "[";
        work->places.clear();
        work->batch.members.clear();
        bool ended = false;
        while (work->text.size() < batchBytes && work->places.size() < mostEvents) {
            const JsonEvents::Found found = m_events.next();
            if (found == JsonEvents::Found::Event) {
                if (!work->places.empty())
                    work->text += ',';
                work->places.push_back({work->text.size(), m_events.text().size(), m_events.events()});
                work->text += m_events.text();
                continue;
            }
            ended = found == JsonEvents::Found::End;
            if (!ended)
                work->batch.members.push_back({m_events.key(), std::string(m_events.text())});
            break;
        }
        m_report.read = m_events.events();
        work->batch.fraction = m_source.fraction();
        if (ended && work->places.empty())
            return nullptr;
        work->text += ']';
        return work;
    }

    /// Parses the first batch that no thread has taken yet. False if there is none.
    bool parseOne(std::unique_lock<std::mutex>& lock)
    {
        const auto found = std::find_if(m_queue.begin(), m_queue.end(),
                                        [](const auto& each) { return each->state == Work::State::Scanned; });
        if (found == m_queue.end())
            return false;
        Work& work = **found;
        work.state = Work::State::BeingParsed;
        lock.unlock();
        try {
            work.parse();
        } catch (...) { // out of memory: the other thread fails in the same way
            lock.lock();
            work.state = Work::State::Scanned;
            throw;
        }
        lock.lock();
        work.state = Work::State::Parsed;
        m_changed.notify_all();
        return true;
    }

    bool wantsScan() const
    {
        return !m_ended && m_queue.size() < mostBatches
               && std::count_if(m_queue.begin(), m_queue.end(), [](const auto& each) {
                      return each->state == Work::State::Scanned;
                  }) < fewScanned;
    }

    /// The second thread's function.
    void scanAll()
    {
        std::unique_lock lock(m_mutex);
        try {
            while (!m_stop) {
                if (wantsScan()) {
                    lock.unlock();
                    std::unique_ptr<Work> work = scan();
                    lock.lock();
                    m_ended = work == nullptr;
                    if (work)
                        m_queue.push_back(std::move(work));
                    m_changed.notify_all();
                } else if (!parseOne(lock)) {
                    if (m_ended)
                        return;
                    m_changed.wait(lock);
                }
            }
        } catch (...) {
            if (!lock.owns_lock())
                lock.lock();
            m_failure = std::current_exception();
            m_ended = true;
            m_changed.notify_all();
        }
    }

    /// For the first batch, and on machines without a second thread.
    const Batch* nextAlone()
    {
        m_taken = scan();
        if (!m_taken)
            return nullptr;
        const bool full = m_taken->text.size() >= batchBytes || m_taken->places.size() >= mostEvents;
        m_taken->parse();
        if (full && std::thread::hardware_concurrency() > 1)
            m_thread = std::thread([this] { scanAll(); });
        return &m_taken->batch;
    }

    const Batch* next()
    {
        std::unique_lock lock(m_mutex);
        if (m_taken)
            m_spare.push_back(std::move(m_taken));
        if (!m_thread.joinable()) {
            lock.unlock();
            return nextAlone();
        }
        while (m_queue.empty() ? !m_ended : m_queue.front()->state != Work::State::Parsed)
            if (!parseOne(lock))
                m_changed.wait(lock);
        if (m_queue.empty()) {
            if (m_failure)
                std::rethrow_exception(std::exchange(m_failure, nullptr));
            return nullptr;
        }
        m_taken = std::move(m_queue.front());
        m_queue.pop_front();
        m_changed.notify_all();
        return &m_taken->batch;
    }

    ByteSource& m_source;
    ImportReport m_report; ///< used by the scanning thread until the end
    JsonEvents m_events;
    std::mutex m_mutex; ///< guards what follows
    std::condition_variable m_changed;
    std::deque<std::unique_ptr<Work>> m_queue; ///< in the file's order
    std::vector<std::unique_ptr<Work>> m_spare;
    std::exception_ptr m_failure; ///< thrown after the queue is empty
    bool m_ended = false, m_stop = false;
    std::unique_ptr<Work> m_taken; ///< the batch that the caller has
    std::thread m_thread;
};

ChromeBatches::ChromeBatches(ByteSource& source, std::string where)
    : d(std::make_unique<Private>(source, std::move(where)))
{
}

ChromeBatches::~ChromeBatches() = default;

const ChromeBatches::Batch* ChromeBatches::next()
{
    return d->next();
}

const ImportReport& ChromeBatches::report() const
{
    return d->m_report;
}

} // namespace pipewright
