// SPDX-License-Identifier: GPL-3.0-or-later
// A capture and the graph that it becomes. Several streams may take part: one that waits for an event recorded in a
// capturing stream is in the same capture from then on, as a branch of its own, and has to be waited for by the stream
// where the capture began (CUDA C++ Programming Guide, "Cross-stream Dependencies and Events"). A node is an operation
// given to a stream, with the nodes before it; when a graph runs, only these dependencies order its branches.
#pragma once

#include "engine.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace standin {

struct Node {
    Operation operation;
    std::size_t branch = 0;
    std::vector<std::size_t> after; ///< nodes, of any branch
    std::uint64_t number = 0;       ///< of CUPTI
};

class Capture {
public:
    Capture(Stream& origin, bool threadLocal);
    void add(std::size_t branch, Operation operation);
    /// Orders the stream's next operation after these nodes. The stream joins the capture if it is not part of it yet.
    void follow(const std::shared_ptr<Capture>& self, Stream& stream, const std::vector<std::size_t>& nodes);
    /// The nodes that an event recorded now in this branch stands for.
    const std::vector<std::size_t>& endOf(std::size_t branch) const { return m_ends[branch]; }
    /// Ends the capture for all its streams.
    void end();
    /// Whether the origin stream is ordered after all work of the other streams.
    bool isJoined() const;

    Stream& origin;
    const std::thread::id thread;
    const bool threadLocal;
    bool invalid = false, ended = false;
    std::vector<Node> nodes;
    std::vector<Stream*> streams; ///< of the branches; the first is the origin

private:
    std::vector<std::vector<std::size_t>> m_ends; ///< per branch: the nodes before its next node
};

/// A captured graph; once executable it has a stream of its own for each branch except the first.
struct Graph {
    std::vector<Node> nodes;
    std::vector<Stream*> streams; ///< that were captured
    std::vector<Stream*> own;     ///< [branch - 1]
    void makeExecutable();
    void launch(Stream& stream) const;
    ~Graph();
};

} // namespace standin
