// SPDX-License-Identifier: GPL-3.0-or-later
// The shortest order of two blocks' parts, against all orders there are, and against a published profile.
#include "core/program/partorder.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <random>

using namespace pipewright;

namespace {

using Parts = std::vector<BlockPart>;

/// The length of one order from its rules alone: a part begins when the one before it on its stream has ended, and the
/// last awaited one before it in its block. `onStream` lists (block, part) per stream. Nothing where parts wait for
/// each other in a circle.
std::optional<Nanoseconds> lengthByRules(const std::array<Parts, 2>& parts,
                                         const std::array<std::vector<std::pair<int, int>>, 2>& onStream)
{
    std::map<std::pair<int, int>, Nanoseconds> end;
    std::size_t left = parts[0].size() + parts[1].size();
    std::array<std::size_t, 2> at{};
    std::array<Nanoseconds, 2> free{};
    for (bool moved = true; moved && left > 0;) {
        moved = false;
        for (const std::size_t s : {std::size_t{0}, std::size_t{1}}) {
            if (at[s] == onStream[s].size())
                continue;
            const auto [block, part] = onStream[s][at[s]];
            Nanoseconds start = free[s];
            bool ready = true;
            for (int before = part - 1; before >= 0 && ready; --before)
                if (parts[block][before].awaited) {
                    const auto ended = end.find({block, before});
                    ready = ended != end.end();
                    start = ready ? std::max(start, ended->second) : 0;
                    break;
                }
            if (!ready)
                continue;
            free[s] = end[{block, part}] = start + parts[block][part].time;
            ++at[s];
            --left;
            moved = true;
        }
    }
    return left == 0 ? std::optional(std::max(free[0], free[1])) : std::nullopt;
}

/// Calls `visit` with every merge of `ones` zeros and `others` ones.
template<typename Visit>
void forEachMerge(std::size_t ones, std::size_t others, Visit visit)
{
    std::vector<bool> merge(ones, false);
    merge.resize(ones + others, true);
    do
        visit(merge);
    while (std::next_permutation(merge.begin(), merge.end()));
}

Nanoseconds leastOfAllIssueOrders(const std::array<Parts, 2>& parts)
{
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
    forEachMerge(parts[0].size(), parts[1].size(), [&](const std::vector<bool>& merge) {
        std::array<std::vector<std::pair<int, int>>, 2> onStream;
        std::array<int, 2> next{};
        for (const bool block : merge) {
            const int part = next[block]++;
            onStream[static_cast<std::size_t>(parts[block][part].stream)].emplace_back(block, part);
        }
        least = std::min(least, *lengthByRules(parts, onStream));
    });
    return least;
}

/// Each stream in any order of its own: more than what one order of issue can give.
Nanoseconds leastOfAllStreamOrders(const std::array<Parts, 2>& parts)
{
    std::array<std::array<std::vector<int>, 2>, 2> of; // [block][stream]
    for (const int block : {0, 1})
        for (int part = 0; part < static_cast<int>(parts[block].size()); ++part)
            of[block][static_cast<std::size_t>(parts[block][part].stream)].push_back(part);
    const auto merged = [&of](std::size_t stream, const std::vector<bool>& merge) {
        std::vector<std::pair<int, int>> list;
        std::array<std::size_t, 2> next{};
        for (const bool block : merge)
            list.emplace_back(block, of[block][stream][next[block]++]);
        return list;
    };
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
    forEachMerge(of[0][0].size(), of[1][0].size(), [&](const std::vector<bool>& computing) {
        forEachMerge(of[0][1].size(), of[1][1].size(), [&](const std::vector<bool>& communicating) {
            if (const auto length = lengthByRules(parts, {merged(0, computing), merged(1, communicating)}))
                least = std::min(least, *length);
        });
    });
    return least;
}

class RandomParts {
public:
    explicit RandomParts(unsigned seed) : m_random(seed) {}

    Parts list(std::size_t most, bool allAwaited)
    {
        Parts parts(1 + m_random() % most);
        for (BlockPart& part : parts) {
            part.time = m_random() % 8 == 0 ? 0 : static_cast<Nanoseconds>(m_random() % 40);
            part.stream = m_random() % 2 == 0 ? PartStream::Compute : PartStream::Communication;
            part.awaited = allAwaited || m_random() % 3 != 0;
        }
        return parts;
    }

private:
    std::mt19937 m_random;
};

BlockPart computes(const char* name, int microseconds, bool awaited = true)
{
    return {name, Nanoseconds{microseconds} * 1000, PartStream::Compute, awaited};
}

BlockPart communicates(const char* name, int microseconds)
{
    return {name, Nanoseconds{microseconds} * 1000, PartStream::Communication, true};
}

} // namespace

class PartOrderTest : public QObject {
    Q_OBJECT
private slots:
    void noOrderOfIssueIsShorter()
    {
        for (unsigned seed = 1; seed <= 300; ++seed) {
            RandomParts random(seed);
            const std::array<Parts, 2> parts{random.list(6, false), random.list(6, false)};
            const ShortestParts found = shortestOrder(parts[0], parts[1]);
            QVERIFY(found.proven);
            QCOMPARE(lengthOf(parts[0], parts[1], found.order), found.length);
            QVERIFY2(found.length == leastOfAllIssueOrders(parts), std::to_string(seed).c_str());
        }
    }

    void noOrderOfTheStreamsIsShorterWhereEveryPartIsAwaited()
    {
        for (unsigned seed = 1; seed <= 200; ++seed) {
            RandomParts random(seed);
            const std::array<Parts, 2> parts{random.list(6, true), random.list(6, true)};
            QVERIFY2(shortestOrder(parts[0], parts[1]).length == leastOfAllStreamOrders(parts),
                     std::to_string(seed).c_str());
        }
    }

    void oneComputingPartEachIsTheSumOfTheTwo()
    {
        const Parts one{computes("F", 3)}, other{computes("B", 5)};
        QCOMPARE(shortestOrder(one, other).length, Nanoseconds{8'000});
        const Parts sent{communicates("dispatch", 5)};
        QCOMPARE(shortestOrder(one, sent).length, Nanoseconds{5'000});
    }

    void startsAreThoseOfTheRule()
    {
        const Parts one{computes("attention", 4), communicates("dispatch", 3), computes("experts", 2)};
        const Parts other{communicates("combine", 5), computes("experts", 6, false), communicates("dispatch", 1)};
        PartStarts starts;
        QCOMPARE(lengthOf(one, other, {true, false, true, false, true, false}, &starts), Nanoseconds{13'000});
        QVERIFY((starts[0] == std::vector<Nanoseconds>{0, 5'000, 11'000}));
        QVERIFY((starts[1] == std::vector<Nanoseconds>{0, 5'000, 8'000})); // the last waits for no weight gradient
    }

    void littleEffortTakesAnOrderThatMayBeLonger()
    {
        for (unsigned seed = 1; seed <= 50; ++seed) {
            RandomParts random(seed);
            const Parts one = random.list(20, false), other = random.list(20, false);
            const ShortestParts best = shortestOrder(one, other);
            for (const std::size_t effort : {std::size_t{0}, (one.size() + 1) * (other.size() + 1)}) {
                const ShortestParts quick = shortestOrder(one, other, effort);
                QCOMPARE(lengthOf(one, other, quick.order), quick.length);
                QVERIFY(quick.length >= best.length && quick.least <= best.length);
                QVERIFY(!quick.proven || quick.length == best.length);
            }
        }
    }

    void aPartMovesPastPartsOfTheOtherBlock()
    {
        const auto moved = [](const PartSequence& order, std::size_t block, std::size_t part, std::size_t behind) {
            std::string text;
            for (const bool second : withPartMoved(order, block, part, behind))
                text += second ? '2' : '1';
            return text;
        };
        const PartSequence order{false, true, false, true, true, false}; // 121221
        QCOMPARE(moved(order, 0, 1, 0), "112221");                       // before the first of the other's
        QCOMPARE(moved(order, 0, 1, 3), "122211");                       // behind all of them; its own next goes along
        QCOMPARE(moved(order, 0, 2, 0), "111222");                       // and its own before it
        QCOMPARE(moved(order, 1, 0, 0), "211221");
        QCOMPARE(moved(order, 1, 2, 3), "121212");
        QCOMPARE(moved(order, 1, 1, 2), "121221");
        QCOMPARE(moved(order, 1, 9, 2), "121221"); // there is none
    }

    void longListsStayWithinTheirBounds()
    {
        for (unsigned seed = 1; seed <= 8; ++seed) {
            RandomParts random(seed);
            const Parts one = random.list(200, false), other = random.list(200, false);
            const ShortestParts found = shortestOrder(one, other);
            QCOMPARE(lengthOf(one, other, found.order), found.length);
            QVERIFY(found.least <= found.length);
            QVERIFY(found.proven == (found.least == found.length));
            PartSequence any(one.size(), false);
            any.resize(one.size() + other.size(), true);
            std::mt19937 shuffle(seed);
            for (int i = 0; i < 200; ++i) {
                std::shuffle(any.begin(), any.end(), shuffle);
                QVERIFY(lengthOf(one, other, any) >= found.least);
            }
        }
    }

    /// Durations from the training profile that DeepSeek has published (github.com/deepseek-ai/profile-data,
    /// train.json, of commit ad8f61e and later): one forward and one backward chunk of DualPipe, each of four layers of
    /// experts, expert parallel over 64 GPUs, without transfers between stages. Each number is, in microseconds, the
    /// time from the first to the last kernel of one of its ranges attn(F), dispatch(F), mlp(F), combine(F),
    /// combine(B), mlp(B), dispatch(B), mlp(W), attn(B), attn(W), of layer after layer; they were taken while the two
    /// ran together. The whole took 129.012 ms from the first kernel to the last.
    void publishedChunksOfDeepSeekTakeAsLongAsTheirPartsSay()
    {
        constexpr int layers = 4;
        const int attnF[]{4833, 4393, 4567, 4602}, dispatchF[]{6087, 5746, 7129, 7988}, mlpF[]{4289, 4420, 5212, 4644},
            combineF[]{7327, 8262, 9541, 9653};
        const int combineB[]{4424, 5227, 6210, 7275}, mlpB[]{5746, 5467, 5467, 4772},
            dispatchB[]{7338, 7912, 7517, 7466}, mlpW[]{5333, 5059, 5260, 4639}, attnB[]{9215, 9563, 9646, 9737},
            attnW[]{2381, 2390, 2400, 2412};
        const double measured = 129'012'000;
        Parts forward, backward;
        PartSequence published; // on each stream the order of the profile
        for (int layer = 0; layer < layers; ++layer) {
            forward.insert(forward.end(),
                           {computes("attention", attnF[layer]), communicates("dispatch", dispatchF[layer]),
                            computes("experts", mlpF[layer]), communicates("combine", combineF[layer])});
            backward.insert(backward.end(),
                            {communicates("combine", combineB[layer]), computes("experts", mlpB[layer]),
                             computes("experts' weights", mlpW[layer], false),
                             communicates("dispatch", dispatchB[layer]), computes("attention", attnB[layer]),
                             computes("attention's weights", attnW[layer], false)});
            const PartSequence ofLayer{true, false, true, false, true, true, false, true, true, false};
            published.insert(published.end(), ofLayer.begin(), ofLayer.end());
        }
        const auto off = [measured](Nanoseconds length) { return static_cast<double>(length) / measured - 1; };
        const Nanoseconds asPublished = lengthOf(forward, backward, published);
        QVERIFY2(std::abs(off(asPublished)) < 0.01, std::to_string(asPublished).c_str());
        const ShortestParts shortest = shortestOrder(forward, backward);
        QVERIFY(shortest.proven);
        QVERIFY2(std::abs(off(shortest.length)) < 0.03, std::to_string(shortest.length).c_str());
        QVERIFY(shortest.length <= asPublished);
        // Weight gradients that the rest waits for would cost far more than that.
        for (BlockPart& part : backward)
            part.awaited = true;
        QVERIFY(off(shortestOrder(forward, backward).length) > 0.1);
    }
};

PIPEWRIGHT_TEST(PartOrderTest, NoApplication)
#include "tst_partorder.moc"
