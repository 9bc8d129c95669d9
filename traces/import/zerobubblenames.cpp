// SPDX-License-Identifier: GPL-3.0-or-later
// Parses each name once, decides by the set of names per rank, then numbers stages.
#include "traces/import/zerobubblenames.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <set>
#include <string_view>
#include <unordered_map>

namespace pipewright {

namespace {

constexpr std::string_view clearing = "W_clear."; // the weight gradients that are left, of several microbatches

struct Name {
    char letter = 0;
    int parts = 0;
    std::array<int, 3> number{}; ///< microbatch, chunk, piece; 0 where not stated
};

std::optional<Name> parse(std::string_view text)
{
    constexpr int most = 9999;
    Name name;
    if (text.empty() || (text[0] != 'F' && text[0] != 'B' && text[0] != 'W'))
        return std::nullopt;
    name.letter = text[0];
    const char* at = text.data() + 1;
    const char* const end = text.data() + text.size();
    for (;;) {
        int& number = name.number[static_cast<std::size_t>(name.parts)];
        const auto [rest, error] = std::from_chars(at, end, number);
        if (error != std::errc{} || number < 0 || number > most)
            return std::nullopt;
        ++name.parts;
        if (rest == end)
            return name;
        if (*rest != '.' || name.parts == 3)
            return std::nullopt;
        at = rest + 1;
    }
}

using Numbers = std::array<int, 3>;

/// All names of one rank.
struct OfRank {
    std::map<char, std::set<Numbers>> numbers; ///< by letter
    std::map<int, Nanoseconds> firstForward;   ///< by chunk: when its first forward began
    bool operator==(const OfRank& other) const { return numbers == other.numbers; }
};

struct Ranges {
    std::map<int, OfRank> ranks;
    std::map<std::pair<int, std::uint32_t>, Name> names; ///< by rank and name
    std::int64_t count = 0, cleared = 0;
    Nanoseconds clearedTime = 0;
    std::string example;
};

bool haveCommon(const std::map<char, std::set<Numbers>>& numbers, char a, char b)
{
    const auto first = numbers.find(a), second = numbers.find(b);
    return first != numbers.end() && second != numbers.end()
           && std::any_of(first->second.begin(), first->second.end(),
                          [&](const Numbers& each) { return second->second.contains(each); });
}

/// The ranges of names of so many numbers.
Ranges rangesOf(const TraceData& data, const std::unordered_map<std::uint32_t, std::optional<Name>>& known, int parts)
{
    Ranges ranges;
    for (const Activity& a : data.activities) {
        if (!mayNameBlock(data, a))
            continue;
        const std::optional<Name>& name = known.at(a.name);
        if (!name && data.strings.text(a.name).starts_with(clearing)) {
            ++ranges.cleared;
            ranges.clearedTime += a.end - a.start;
        }
        if (!name || name->parts != parts)
            continue;
        const int rank = data.lanes[a.lane].rank;
        OfRank& of = ranges.ranks[rank];
        of.numbers[name->letter].insert(name->number);
        if (name->letter == 'F') {
            const auto [first, isNew] = of.firstForward.try_emplace(name->number[1], a.start);
            first->second = std::min(first->second, a.start);
        }
        ranges.names.try_emplace({rank, a.name}, *name);
        if (ranges.count++ == 0)
            ranges.example = data.strings.text(a.name);
    }
    return ranges;
}

/// Whether the names cannot be a design's. `splits`: the trace has ranges I.
bool areOfARuntime(const Ranges& ranges, int parts, bool splits)
{
    const auto anyRank = [&](auto holds) { return std::any_of(ranges.ranks.begin(), ranges.ranks.end(), holds); };
    if (parts != 2)
        return anyRank([](const auto& rank) { return haveCommon(rank.second.numbers, 'F', 'B'); });
    if (!splits
        && (ranges.cleared > 0 || anyRank([](const auto& rank) { return haveCommon(rank.second.numbers, 'B', 'W'); })))
        return true;
    if (ranges.ranks.size() < 2
        || anyRank([&](const auto& rank) { return !(rank.second == ranges.ranks.begin()->second); }))
        return false;
    std::set<int> first, second;
    for (const auto& [letter, numbers] : ranges.ranks.begin()->second.numbers)
        for (const Numbers& each : numbers) {
            first.insert(each[0]);
            second.insert(each[1]);
        }
    return first.size() > second.size();
}

/// Whether the last rank runs its second chunk before the first rank does.
bool isV(const std::map<int, OfRank>& ranks)
{
    const auto &first = ranks.begin()->second.firstForward, &last = ranks.rbegin()->second.firstForward;
    const auto ofFirst = first.find(1), ofLast = last.find(1);
    return ranks.size() > 1 && ofFirst != first.end() && ofLast != last.end() && ofLast->second < ofFirst->second;
}

} // namespace

bool mayNameBlock(const TraceData& data, const Activity& activity)
{
    switch (activity.kind()) {
    case ActivityKind::Range:
    case ActivityKind::GpuRange:
    case ActivityKind::Operator:
    case ActivityKind::Other: return !data.lanes[activity.lane].predicted;
    case ActivityKind::Kernel:
    case ActivityKind::Memcpy:
    case ActivityKind::Memset:
    case ActivityKind::Synchronization:
    case ActivityKind::Runtime:
    case ActivityKind::Python:
    case ActivityKind::Overhead:
    case ActivityKind::Mark: break;
    }
    return false;
}

ZeroBubbleNames::ZeroBubbleNames(TraceData& data)
{
    std::unordered_map<std::uint32_t, std::optional<Name>> known;
    bool splits = false;
    std::set<int> partsSeen;
    for (const Activity& a : data.activities) {
        if (!mayNameBlock(data, a))
            continue;
        const auto [name, isNew] = known.try_emplace(a.name);
        if (!isNew)
            continue;
        const std::string& text = data.strings.text(a.name);
        name->second = parse(text);
        if (name->second)
            partsSeen.insert(name->second->parts);
        const auto block = parseBlock(text);
        splits = splits || (block && block->op == Op::I);
    }
    // A runtime names all its ranges alike; the longest names say most.
    for (auto parts = partsSeen.rbegin(); parts != partsSeen.rend(); ++parts) {
        const Ranges ranges = rangesOf(data, known, *parts);
        if (!areOfARuntime(ranges, *parts, splits))
            continue;
        const bool split = ranges.cleared > 0
                           || std::any_of(ranges.ranks.begin(), ranges.ranks.end(),
                                          [](const auto& rank) { return rank.second.numbers.contains('W'); });
        int pieces = 1;
        for (const auto& [key, name] : ranges.names)
            pieces = std::max(pieces, name.number[2] + 1);
        std::map<int, int> place; // of a rank among those that have such ranges
        for (const auto& [rank, of] : ranges.ranks)
            place.emplace(rank, static_cast<int>(place.size()));
        const int count = static_cast<int>(place.size());
        const bool v = isV(ranges.ranks);
        for (const auto& [key, name] : ranges.names) {
            const auto [microbatch, chunk, piece] = name.number;
            const int at = place[key.first];
            PytorchAction& action = m_actions[key];
            action.type = name.letter == 'F'   ? PytorchAction::Type::F
                          : name.letter == 'W' ? PytorchAction::Type::W
                          : split              ? PytorchAction::Type::I
                                               : PytorchAction::Type::B;
            action.stage = chunk * count + (v && chunk % 2 == 1 ? count - 1 - at : at);
            action.microbatch = microbatch * pieces + piece;
        }
        data.report.repair(
            fmt::format(
                "ranges of a zero-bubble runtime, F{}: {}; stages are counted over the {} rank{} of the trace{}",
                *parts == 1   ? "<microbatch>"
                : *parts == 2 ? "<microbatch>.<chunk>"
                              : "<microbatch>.<chunk>.<piece>",
                split ? "B is read as I, the input gradient" : "no W, so B is the full backward", count,
                count == 1 ? "" : "s", v ? ", odd chunks from the last one back" : ""),
            ranges.example, ranges.count);
        if (ranges.cleared > 0)
            data.report.warn(fmt::format("ranges W_clear run the weight gradients of several microbatches at once ({} "
                                         "ranges, {}), so those have no time of their own",
                                         ranges.cleared, formatDuration(ranges.clearedTime)),
                             "");
        return;
    }
}

std::optional<PytorchAction> ZeroBubbleNames::actionOf(int rank, std::uint32_t name) const
{
    const auto found = m_actions.find({rank, name});
    return found == m_actions.end() ? std::nullopt : std::optional(found->second);
}

} // namespace pipewright
