// SPDX-License-Identifier: GPL-3.0-or-later
// Classifies each distinct name once, collects ranges and operators of the lowest rank, sorts them by start and nests
// them with a stack per lane; the autograd engine's operators find their forward by PyTorch's sequence number. O(slices
// log slices).
#include "traces/analysis/layerslices.h"

#include "core/base/diagnostic.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <tuple>
#include <unordered_map>

namespace pipewright {

namespace {

constexpr std::string_view enginePrefix = "autograd::engine::evaluate_function: ";

struct PassWord {
    std::string_view word;
    LayerPass pass;
};
constexpr std::array<PassWord, 17> passWords{{{"forward", LayerPass::Forward},
                                              {"fwd", LayerPass::Forward},
                                              {"fw", LayerPass::Forward},
                                              {"(f)", LayerPass::Forward},
                                              {"input gradient", LayerPass::InputGrad},
                                              {"input grad", LayerPass::InputGrad},
                                              {"dgrad", LayerPass::InputGrad},
                                              {"(i)", LayerPass::InputGrad},
                                              {"weight gradient", LayerPass::WeightGrad},
                                              {"weight grad", LayerPass::WeightGrad},
                                              {"wgrad", LayerPass::WeightGrad},
                                              {"(w)", LayerPass::WeightGrad},
                                              {"backward", LayerPass::Backward},
                                              {"bwd", LayerPass::Backward},
                                              {"bw", LayerPass::Backward},
                                              {"back", LayerPass::Backward},
                                              {"(b)", LayerPass::Backward}}};

bool isWordPart(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

std::string trimmed(std::string_view text)
{
    constexpr std::string_view separators = " _-:./|,\t";
    const std::size_t first = text.find_first_not_of(separators);
    if (first == text.npos)
        return {};
    std::string name(text.substr(first, text.find_last_not_of(separators) - first + 1));
    for (char& c : name) // names appear in tables
        if (c == ',' || c == ';' || c == '"' || static_cast<unsigned char>(c) < 0x20)
            c = ' ';
    return name;
}

/// Ranges that tools write, not the user.
bool isOfTools(std::string_view name)
{
    constexpr std::array<std::string_view, 8> beginnings{
        "ProfilerStep#", "Optimizer.", "enumerate(DataLoader)", "[pytorch|", "PP:", "nccl", "c10d::", "autograd::"};
    return std::any_of(beginnings.begin(), beginnings.end(),
                       [&](std::string_view beginning) { return name.starts_with(beginning); });
}

/// The sequence number in a range of emit_nvtx(): "aten::addmm, seq = 12, …".
std::optional<std::int64_t> sequenceOf(std::string_view name)
{
    constexpr std::string_view key = ", seq = ";
    const std::size_t at = name.find(key);
    std::int64_t number = 0;
    if (at == name.npos
        || std::from_chars(name.data() + at + key.size(), name.data() + name.size(), number).ec != std::errc{})
        return std::nullopt;
    return number;
}

/// The share of an engine operator's time that makes weight gradients: half for a matrix product, whose other half
/// makes the input gradient; all for an embedding table, and for operators that only pass gradients to parameters.
double weightShareOf(std::string_view node)
{
    const auto holds = [&](std::string_view part) { return node.find(part) != node.npos; };
    if (holds("AccumulateGrad") || holds("Embedding") || node.starts_with("TBackward"))
        return 1;
    const bool batched = holds("Bmm") || holds("Baddbmm"); // products of activations: attention
    return !batched && (holds("mmBackward") || holds("MmBackward") || holds("Linear") || holds("Convolution")) ? 0.5
                                                                                                               : 0;
}

/// An ECMAScript expression, for a part of a range's name.
std::regex regexOf(const std::string& expression)
{
    try {
        return std::regex(expression, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error& error) {
        throw Error("--layers", inQuotes(expression) + " is no regular expression: " + error.what(),
                    "such as \"block [0-9]+|head\"");
    }
}

class Collecting {
public:
    Collecting(const StoredActivities& trace, const std::string& expression) : m_trace(trace)
    {
        if (!expression.empty())
            m_expression = regexOf(expression);
        for (const std::string& name : trace.strings)
            m_class.push_back(classOf(name));
    }

    LayerSlices run()
    {
        int lowest = std::numeric_limits<int>::max();
        forEach([&](const Track& track, std::size_t i) {
            if (isRange(track, i))
                lowest = std::min(lowest, m_trace.lanes[track.lane].rank);
        });
        m_slices.rank = lowest;
        forEach([&](const Track& track, std::size_t i) {
            if (m_trace.lanes[track.lane].rank == lowest)
                take(track, i);
        });
        const auto byStart = [](const auto& a, const auto& b) {
            return std::tuple(a.start, b.end, a.lane) < std::tuple(b.start, a.end, b.lane);
        };
        std::sort(m_slices.nodes.begin(), m_slices.nodes.end(), byStart);
        std::sort(m_slices.ranges.begin(), m_slices.ranges.end(), byStart);
        std::sort(m_slices.operators.begin(), m_slices.operators.end(), byStart);
        keepOutermostNodes();
        std::erase_if(m_slices.ranges, [&](const auto& range) { return nodeAt(range.lane, range.start) != nullptr; });
        findForwards();
        nest();
        return std::move(m_slices);
    }

private:
    enum class Class : std::uint8_t { None, Layer, Node, Numbered };

    Class classOf(const std::string& name) const
    {
        if (name.starts_with(enginePrefix))
            return Class::Node;
        if (sequenceOf(name))
            return Class::Numbered;
        if (m_expression)
            return std::regex_search(name, *m_expression) ? Class::Layer : Class::None;
        return isOfTools(name) ? Class::None : Class::Layer;
    }

    bool isRange(const Track& track, std::size_t i) const
    {
        if (m_class[track.name[i]] != Class::Layer)
            return false;
        switch (track.kind[i]) {
        case ActivityKind::Range: return true;
        case ActivityKind::Python:
        case ActivityKind::Operator:
        case ActivityKind::Other: return m_expression.has_value();
        case ActivityKind::Kernel:
        case ActivityKind::Memcpy:
        case ActivityKind::Memset:
        case ActivityKind::GpuRange:
        case ActivityKind::Synchronization:
        case ActivityKind::Runtime:
        case ActivityKind::Overhead:
        case ActivityKind::Mark: break;
        }
        return false;
    }

    template<class Visit>
    void forEach(Visit visit) const
    {
        for (const Track& track : m_trace.tracks)
            if (m_trace.lanes[track.lane].kind == TraceLane::Kind::Thread)
                for (std::size_t i = 0; i < track.size(); ++i)
                    visit(track, i);
    }

    void take(const Track& track, std::size_t i)
    {
        const LayerSlices::Slice slice{track.start[i], track.end[i], track.lane, track.name[i]};
        const std::string& name = m_trace.strings[slice.name];
        if (isRange(track, i)) {
            LayerSlices::Range& range = m_slices.ranges.emplace_back();
            static_cast<LayerSlices::Slice&>(range) = slice;
            range.is = layerName(name);
        } else if (m_class[slice.name] == Class::Node) {
            LayerSlices::Node& node = m_slices.nodes.emplace_back();
            static_cast<LayerSlices::Slice&>(node) = slice;
            const std::string_view what = std::string_view(name).substr(enginePrefix.size());
            node.accumulates = what.find("AccumulateGrad") != what.npos;
            node.weightShare = weightShareOf(what);
        } else if (m_class[slice.name] == Class::Numbered) {
            m_numbered.push_back(slice);
        } else if (track.kind[i] == ActivityKind::Operator) {
            m_slices.operators.push_back(slice);
        }
    }

    /// A backward within a backward (checkpoints) is part of the outer one.
    void keepOutermostNodes()
    {
        std::unordered_map<std::uint32_t, Nanoseconds> until;
        std::erase_if(m_slices.nodes, [&](const LayerSlices::Node& node) {
            Nanoseconds& last = until.try_emplace(node.lane, std::numeric_limits<Nanoseconds>::min()).first->second;
            const bool within = node.start < last;
            last = std::max(last, node.end);
            return within;
        });
        for (std::size_t i = 0; i < m_slices.nodes.size(); ++i)
            m_nodesOf[m_slices.nodes[i].lane].push_back(i);
    }

    LayerSlices::Node* nodeAt(std::uint32_t lane, Nanoseconds time)
    {
        const auto of = m_nodesOf.find(lane);
        if (of == m_nodesOf.end())
            return nullptr;
        const auto after =
            std::upper_bound(of->second.begin(), of->second.end(), time,
                             [&](Nanoseconds t, std::size_t node) { return t < m_slices.nodes[node].start; });
        if (after == of->second.begin())
            return nullptr;
        LayerSlices::Node& node = m_slices.nodes[*(after - 1)];
        return time < node.end ? &node : nullptr;
    }

    void findForwards()
    {
        const auto give = [&](LayerSlices::Node& node, Nanoseconds forward) {
            node.forward = std::max(node.forward, forward);
            m_slices.arrows = true;
        };
        for (const TraceFlow& flow : m_trace.flows)
            if (m_trace.lanes[flow.fromLane].rank == m_slices.rank)
                if (LayerSlices::Node* node = nodeAt(flow.toLane, flow.to))
                    give(*node, flow.from);
        std::unordered_map<std::int64_t, Nanoseconds> forwards; // of a number, the last operator counts
        for (const LayerSlices::Slice& slice : m_numbered)
            if (nodeAt(slice.lane, slice.start) == nullptr) {
                Nanoseconds& last = forwards[*sequenceOf(m_trace.strings[slice.name])];
                last = std::max(last, slice.start);
            }
        for (LayerSlices::Node& node : m_slices.nodes)
            if (const auto number = sequenceOf(m_trace.strings[node.name]))
                if (const auto forward = forwards.find(*number); forward != forwards.end())
                    give(node, forward->second);
    }

    /// Nests the ranges of a thread. A range around others whose name tells the pass gives that pass to them.
    void nest()
    {
        std::vector<Nanoseconds> forwards;
        for (const LayerSlices::Node& node : m_slices.nodes)
            if (node.forward != LayerSlices::Node::unknown)
                forwards.push_back(node.forward);
        std::sort(forwards.begin(), forwards.end());
        std::unordered_map<std::uint32_t, std::vector<std::size_t>> open;
        for (std::size_t i = 0; i < m_slices.ranges.size(); ++i) {
            LayerSlices::Range& range = m_slices.ranges[i];
            std::vector<std::size_t>& stack = open[range.lane];
            while (!stack.empty() && m_slices.ranges[stack.back()].end <= range.start)
                stack.pop_back();
            if (!stack.empty()) {
                const LayerSlices::Range& around = m_slices.ranges[stack.back()];
                range.depth = around.depth + (around.is.layer.empty() ? 0 : 1);
                if (!range.is.said && around.is.said) {
                    range.is.pass = around.is.pass;
                    range.is.said = true;
                }
            }
            const auto first = std::lower_bound(forwards.begin(), forwards.end(), range.start);
            range.forwardWork = first != forwards.end() && *first < range.end;
            stack.push_back(i);
        }
        std::erase_if(m_slices.ranges, [](const LayerSlices::Range& range) { return range.is.layer.empty(); });
    }

    const StoredActivities& m_trace;
    std::optional<std::regex> m_expression;
    std::vector<Class> m_class; ///< by name
    LayerSlices m_slices;
    std::vector<LayerSlices::Slice> m_numbered;
    std::unordered_map<std::uint32_t, std::vector<std::size_t>> m_nodesOf; ///< by lane
};

/// Forward passes of the ranges at one depth.
LayerRuns runsAt(const LayerSlices& slices, int depth)
{
    std::vector<Nanoseconds> backwards;
    std::set<std::string> withBackward;
    for (const LayerSlices::Node& node : slices.nodes)
        backwards.push_back(node.start);
    for (const LayerSlices::Range& range : slices.ranges)
        if (range.is.pass != LayerPass::Forward) {
            backwards.push_back(range.start);
            withBackward.insert(range.is.layer);
        }
    // The ranges of an optimizer or of data loading have no backward.
    const auto isLayer = [&](const LayerSlices::Range& range) {
        return slices.arrows ? range.forwardWork : withBackward.empty() || withBackward.contains(range.is.layer);
    };
    std::sort(backwards.begin(), backwards.end());
    std::map<std::vector<std::string>, std::vector<LayerRun>> found; // by the layers' names
    LayerRun run;
    std::vector<std::string> names;
    const auto close = [&] {
        if (!run.ranges.empty())
            found[std::move(names)].push_back(std::move(run));
        names.clear();
        run = {};
    };
    Nanoseconds last = 0;
    for (std::size_t i = 0; i < slices.ranges.size(); ++i) {
        const LayerSlices::Range& range = slices.ranges[i];
        if (range.depth != depth || range.is.pass != LayerPass::Forward || !isLayer(range))
            continue;
        const auto backward = std::lower_bound(backwards.begin(), backwards.end(), last);
        if (backward != backwards.end() && *backward < range.start)
            close();
        last = range.end;
        run.ranges.push_back(i);
        names.push_back(range.is.layer);
    }
    close();
    LayerRuns runs;
    std::size_t all = 0;
    for (auto& [layers, of] : found) {
        all += of.size();
        // The most frequent sequence; of two equally frequent ones the longer, since a recording's first or last pass
        // may be cut.
        if (std::tuple(of.size(), layers.size()) > std::tuple(runs.runs.size(), runs.layers.size())) {
            runs.runs = of;
            runs.layers = layers;
        }
    }
    runs.others = static_cast<int>(all - runs.runs.size());
    return runs;
}

/// "block", "block" are "block 0", "block 1".
void number(std::vector<std::string>& names)
{
    std::map<std::string, int> count, next;
    for (const std::string& name : names)
        ++count[name];
    for (std::string& name : names)
        if (count[name] > 1)
            name += " " + std::to_string(next[name]++);
}

} // namespace

LayerName layerName(std::string_view range)
{
    std::string small(range);
    std::transform(small.begin(), small.end(), small.begin(),
                   [](unsigned char c) { return c == '_' ? ' ' : static_cast<char>(std::tolower(c)); });
    for (const auto& [word, pass] : passWords) {
        const bool bracketed = word.front() == '(';
        if (small.ends_with(word)) {
            const std::size_t before = small.size() - word.size();
            if (before == 0 || bracketed || !isWordPart(small[before - 1]))
                return {trimmed(range.substr(0, before)), pass, true};
        }
        if (small.starts_with(word) && !isWordPart(small[word.size()]) && !bracketed)
            return {trimmed(range.substr(word.size())), pass, true};
    }
    return {trimmed(range), LayerPass::Forward, false};
}

LayerSlices layerSlices(const StoredActivities& trace, const std::string& expression)
{
    return Collecting(trace, expression).run();
}

LayerRuns layerRuns(const LayerSlices& slices, bool namedByUser)
{
    int deepest = -1;
    for (const LayerSlices::Range& range : slices.ranges)
        deepest = std::max(deepest, range.depth);
    for (int depth = 0; depth <= deepest; ++depth)
        if (LayerRuns runs = runsAt(slices, depth);
            runs.layers.size() > 1 || (namedByUser && runs.layers.size() == 1)) {
            number(runs.layers);
            return runs;
        }
    return {};
}

} // namespace pipewright
