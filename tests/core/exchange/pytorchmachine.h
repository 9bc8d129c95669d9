// SPDX-License-Identifier: GPL-3.0-or-later
// A small machine for tests that runs a compute_comms file as PyTorch would. It reads the file by itself and
// shares no code with what it tests.
#pragma once

#include "core/design/costs.h"

#include <QString>
#include <QStringList>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace pipewright::test {

/// What PyTorch's runtime does with compute_comms: cells in order; a receive must be posted before the
/// computation that needs it, which waits for it; sends and receives of a rank run one after the other in the
/// order of their cells (one NCCL stream), each together with its partner; a wait blocks the rank until its send is
/// complete. `blocking`: the rank waits for every transfer.
struct Machine {
    struct Action {
        std::string type;
        int stage = 0, microbatch = -1;
        bool together = false; ///< with the next action
    };
    std::vector<std::vector<Action>> rows;
    std::map<int, int> rankOfStage;
    int stages = 0;

    explicit Machine(const std::string& csv)
    {
        for (const QString& line : QString::fromStdString(csv).split('\n', Qt::SkipEmptyParts)) {
            rows.emplace_back();
            for (QString cell : QString(line).replace(';', "&,").split(',')) {
                const bool together = cell.endsWith('&');
                cell.remove('(').remove(")OVERLAP_F_B").remove('&');
                int digits = 0;
                while (digits < cell.size() && cell[digits].isDigit())
                    ++digits;
                int tail = static_cast<int>(cell.size());
                while (tail > digits && cell[tail - 1].isDigit())
                    --tail;
                Action a{cell.mid(digits, tail - digits).toStdString(), cell.left(digits).toInt(),
                         tail < cell.size() ? cell.mid(tail).toInt() : -1};
                if (a.type == "F") {
                    rankOfStage[a.stage] = static_cast<int>(rows.size()) - 1;
                    stages = std::max(stages, a.stage + 1);
                }
                a.together = together;
                rows.back().push_back(a);
            }
        }
    }

    static Op opOf(const Action& a)
    {
        return a.type == "F" ? Op::F : a.type == "B" ? Op::B : a.type == "I" ? Op::I : Op::W;
    }
    static bool isTransfer(const Action& a) { return a.type.starts_with("SEND") || a.type.starts_with("RECV"); }
    static bool isWait(const Action& a) { return a.type.starts_with("WAIT_SEND"); }
    static std::tuple<bool, int, int> waitedFor(const Action& a)
    {
        return {a.type.ends_with("_B"), a.stage, a.microbatch};
    }

    /// When the last computation ends on ranks with one stream for computations and one for transfers, which
    /// take `latency`; a transfer starts when everything that its two ranks had before it in their streams, and
    /// the computations before it, have ended. -1 when it hangs.
    Nanoseconds makespan(const Costs& costs, Nanoseconds latency) const
    {
        using Key = std::tuple<bool, int, int>;
        struct Transfer {
            bool send;
            int peer;
            Key key;
            Nanoseconds issued;
        };
        std::vector<std::size_t> next(rows.size(), 0);
        std::vector<std::deque<Transfer>> stream(rows.size());
        std::vector<Nanoseconds> computed(rows.size(), 0), transferred(rows.size(), 0);
        std::vector<std::map<Key, Nanoseconds>> available(rows.size());
        std::vector<std::map<Key, Nanoseconds>> through(rows.size()); // sends
        for (bool progress = true; progress;) {
            progress = false;
            for (std::size_t r = 0; r < rows.size(); ++r) {
                for (; next[r] < rows[r].size(); ++next[r], progress = true) {
                    const Action& a = rows[r][next[r]];
                    if (isWait(a)) {
                        const auto end = through[r].find(waitedFor(a));
                        if (end == through[r].end())
                            break;
                        computed[r] = std::max(computed[r], end->second);
                    } else if (isTransfer(a)) {
                        const bool gradient = a.type.ends_with("_B"), send = a.type.starts_with("SEND");
                        const int other = a.stage + (send == gradient ? -1 : 1);
                        stream[r].push_back({send,
                                             rankOfStage.at(other),
                                             {gradient, send ? a.stage : other, a.microbatch},
                                             computed[r]});
                    } else if (a.type.size() == 1) {
                        // Two together start when both may, and end together.
                        Nanoseconds start = computed[r], duration = 0;
                        bool ready = true;
                        for (std::size_t i = next[r]; i <= next[r] + a.together; ++i) {
                            const Action& b = rows[r][i];
                            const int source = b.stage + (b.type == "F" ? -1 : 1);
                            if (b.type != "W" && source >= 0 && source < stages) {
                                const auto input = available[r].find({b.type != "F", source, b.microbatch});
                                ready = ready && input != available[r].end();
                                if (ready)
                                    start = std::max(start, input->second);
                            }
                            duration += costs.duration(opOf(b), b.stage);
                        }
                        if (!ready)
                            break;
                        computed[r] = start + duration;
                        for (std::size_t i = next[r]; i <= next[r] + a.together; ++i)
                            if (const Action& b = rows[r][i]; b.type != "W")
                                available[r][{b.type != "F", b.stage, b.microbatch}] = computed[r];
                        next[r] += a.together;
                    }
                }
                while (!stream[r].empty()) {
                    const Transfer mine = stream[r].front();
                    const auto peer = static_cast<std::size_t>(mine.peer);
                    if (stream[peer].empty() || stream[peer].front().key != mine.key
                        || stream[peer].front().send == mine.send)
                        break;
                    const Transfer theirs = stream[peer].front();
                    const Nanoseconds end =
                        std::max({mine.issued, theirs.issued, transferred[r], transferred[peer]}) + latency;
                    transferred[r] = transferred[peer] = end;
                    available[mine.send ? peer : r][mine.key] = end;
                    through[mine.send ? r : peer][mine.key] = end;
                    stream[r].pop_front();
                    stream[peer].pop_front();
                    progress = true;
                }
            }
        }
        for (std::size_t r = 0; r < rows.size(); ++r)
            if (next[r] < rows[r].size() || !stream[r].empty())
                return -1;
        return *std::max_element(computed.begin(), computed.end());
    }

    /// Empty when everything ran.
    QString run(bool blocking) const
    {
        using Key = std::tuple<bool, int, int>; // gradient, producing stage, microbatch
        struct Transfer {
            bool send;
            int peer;
            Key key;
        };
        std::vector<std::size_t> next(rows.size(), 0);
        std::vector<std::deque<Transfer>> stream(rows.size());
        std::vector<std::set<Key>> posted(rows.size()), arrived(rows.size()), made(rows.size()), sent(rows.size()),
            through(rows.size());
        std::map<int, int> backwardsLeft;    // per stage
        std::map<std::size_t, int> reducing; // rank -> stage, where reductions are waited for
        bool endAtOnce = true;
        for (const std::vector<Action>& row : rows)
            for (const Action& a : row) {
                backwardsLeft[a.stage] += a.type == "B" || a.type == "W";
                endAtOnce = endAtOnce && a.type != "WAIT_REDUCE_GRAD";
            }
        for (bool progress = true; progress;) {
            progress = false;
            for (std::size_t r = 0; r < rows.size(); ++r) {
                while (next[r] < rows[r].size() && !(blocking && !stream[r].empty())) {
                    const Action& a = rows[r][next[r]];
                    const QString name =
                        QString::fromStdString(std::to_string(a.stage) + a.type + std::to_string(a.microbatch));
                    const bool gradient = a.type.ends_with("_B");
                    if (isWait(a)) {
                        if (!sent[r].count(waitedFor(a)))
                            return name + " without a send";
                        if (!through[r].count(waitedFor(a)))
                            break;
                        sent[r].erase(waitedFor(a));
                    } else if (isTransfer(a)) {
                        const bool send = a.type.starts_with("SEND");
                        const int other = a.stage + (send == gradient ? -1 : 1);
                        if (!rankOfStage.count(other) || rankOfStage.at(other) == static_cast<int>(r))
                            return name + " has no partner";
                        const Key key{gradient, send ? a.stage : other, a.microbatch};
                        if (send && !made[r].count(key))
                            return name + " before its value was made";
                        if (!send && !posted[r].insert(key).second)
                            return name + " received twice";
                        if (send)
                            sent[r].insert(key);
                        stream[r].push_back({send, rankOfStage.at(other), key});
                    } else if (a.type == "F" || a.type == "B" || a.type == "I") {
                        const int source = a.stage + (a.type == "F" ? -1 : 1);
                        const Key key{a.type != "F", source, a.microbatch};
                        if (source >= 0 && source < stages) {
                            if (rankOfStage.at(source) == static_cast<int>(r)) {
                                if (!made[r].count(key))
                                    return name + " before its local input";
                            } else {
                                if (!posted[r].count(key))
                                    return name + " has no receive posted";
                                if (!arrived[r].count(key))
                                    break; // waits
                            }
                        }
                        made[r].insert({a.type != "F", a.stage, a.microbatch});
                    } else if (a.type == "REDUCE_GRAD") {
                        if (backwardsLeft[a.stage] != 0 || (!endAtOnce && !reducing.emplace(r, a.stage).second))
                            return name + " too early";
                    } else if (a.type == "WAIT_REDUCE_GRAD") {
                        const auto pending = reducing.find(r);
                        if (pending == reducing.end() || pending->second != a.stage)
                            return name + " without its reduction";
                        reducing.erase(pending);
                    } else if (a.type == "RESHARD" && backwardsLeft[a.stage] != 0) {
                        return name + " too early";
                    }
                    if (a.type == "B" || a.type == "W")
                        --backwardsLeft[a.stage];
                    ++next[r];
                    progress = true;
                }
                if (stream[r].empty() || !stream[r].front().send)
                    continue;
                const Transfer& send = stream[r].front();
                auto& other = stream[send.peer];
                if (other.empty() || other.front().send || other.front().peer != static_cast<int>(r))
                    continue;
                if (other.front().key != send.key)
                    return QString("rank %1 sends something else than rank %2 receives").arg(r).arg(send.peer);
                arrived[send.peer].insert(send.key);
                through[r].insert(send.key);
                stream[r].pop_front();
                other.pop_front();
                progress = true;
            }
        }
        for (std::size_t r = 0; r < rows.size(); ++r)
            if (next[r] < rows[r].size() || !stream[r].empty())
                return QString("rank %1 hangs").arg(r);
        return {};
    }
};

} // namespace pipewright::test
