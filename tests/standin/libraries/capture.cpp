// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace standin {

Capture::Capture(Stream& origin, bool threadLocal)
    : origin(origin), thread(std::this_thread::get_id()), threadLocal(threadLocal), streams{&origin}, m_ends(1)
{
}

void Capture::add(std::size_t branch, Operation operation)
{
    nodes.push_back({std::move(operation), branch, std::move(m_ends[branch])});
    m_ends[branch] = {nodes.size() - 1};
}

void Capture::follow(const std::shared_ptr<Capture>& self, Stream& stream, const std::vector<std::size_t>& before)
{
    const bool isNew = !stream.capture;
    if (isNew) {
        stream.capture = self;
        stream.branch = streams.size();
        streams.push_back(&stream);
        m_ends.emplace_back();
    }
    std::vector<std::size_t>& end = m_ends[stream.branch];
    for (const std::size_t node : before)
        if (std::find(end.begin(), end.end(), node) == end.end())
            end.push_back(node);
    if (isNew) // an empty node, since a branch without work must be joined too
        add(stream.branch, {[](const Running&) {}});
}

void Capture::end()
{
    ended = true;
    for (Stream* stream : streams)
        stream->capture.reset();
}

bool Capture::isJoined() const
{
    std::vector<bool> reached(nodes.size());
    std::vector<std::size_t> left = m_ends.front();
    while (!left.empty()) {
        const std::size_t node = left.back();
        left.pop_back();
        if (!reached[node]) {
            reached[node] = true;
            left.insert(left.end(), nodes[node].after.begin(), nodes[node].after.end());
        }
    }
    return std::all_of(m_ends.begin(), m_ends.end(), [&](const auto& end) {
        return std::all_of(end.begin(), end.end(), [&](std::size_t node) { return reached[node]; });
    });
}

void Graph::makeExecutable()
{
    for (std::size_t branch = 1; branch < streams.size(); ++branch)
        own.push_back(new Stream(streams[branch]->device, streams[branch]->slice, streams[branch]->context));
}

Graph::~Graph()
{
    for (Stream* stream : own)
        stream->end(); // the object is kept, as for every stream
}

void Graph::launch(Stream& stream) const
{
    if (own.empty()) {
        for (const Node& node : nodes)
            stream.push([work = node.operation.work, number = node.number](const Running& running) {
                work({running.correlation, number});
            });
        return;
    }
    struct Progress {
        std::mutex mutex;
        std::condition_variable changed;
        bool begun = false;
        std::vector<bool> done;
    };
    const auto progress = std::make_shared<Progress>();
    progress->done.resize(nodes.size());
    stream.push([progress](const Running&) {
        {
            const std::lock_guard lock(progress->mutex);
            progress->begun = true;
        }
        progress->changed.notify_all();
    });
    const auto streamOfBranch = [&](std::size_t branch) -> Stream& { return branch == 0 ? stream : *own[branch - 1]; };
    // Waits until a node is done, or its GPU or the waiting one is lost.
    const auto waitFor = [progress](std::unique_lock<std::mutex>& lock, std::size_t node, int device, int other) {
        waitUnlessLost(lock, progress->changed, device, other, [&] { return progress->begun && progress->done[node]; });
    };
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const Node& node = nodes[i];
        std::vector<std::pair<std::size_t, int>> before; // with their GPUs
        for (const std::size_t each : node.after)
            before.emplace_back(each, streamOfBranch(nodes[each].branch).device);
        streamOfBranch(node.branch)
            .push([=, own = streamOfBranch(node.branch).device, first = stream.device, work = node.operation.work,
                   number = node.number](const Running& running) {
                {
                    std::unique_lock lock(progress->mutex);
                    waitUnlessLost(lock, progress->changed, own, first, [&] { return progress->begun; });
                    for (const auto& [each, device] : before)
                        waitFor(lock, each, own, device);
                }
                work({running.correlation, number});
                {
                    const std::lock_guard lock(progress->mutex);
                    progress->done[i] = true;
                }
                progress->changed.notify_all();
            });
    }
    std::vector<int> devices;
    for (const Node& node : nodes)
        devices.push_back(streamOfBranch(node.branch).device);
    stream.push([=, own = stream.device](const Running&) {
        std::unique_lock lock(progress->mutex);
        for (std::size_t i = 0; i < devices.size(); ++i)
            waitFor(lock, i, own, devices[i]);
    });
}

} // namespace standin
