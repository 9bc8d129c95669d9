// SPDX-License-Identifier: GPL-3.0-or-later
// Random questions to the predictor: a published model on a preset cluster under a published family, with options, as
// somebody would ask on the command line. Each follows from its seed; a failing relation names it, and PIPEWRIGHT_SEED
// asks that question alone.
#pragma once

#include "core/design/designbuilder.h"
#include "core/design/redesign.h"
#include "core/predict/predict.h"

#include <QString>
#include <QTest>

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::test {

class Draw {
public:
    explicit Draw(unsigned seed) : m_random(seed) {}
    int upTo(int most) { return 1 + static_cast<int>(m_random() % static_cast<std::uint64_t>(most)); }
    bool oneIn(int times) { return upTo(times) == 1; }
    template<typename List>
    const auto& of(const List& list)
    {
        return list[static_cast<std::size_t>(upTo(static_cast<int>(std::size(list)))) - 1];
    }
    double between(double low, double high) { return low + (high - low) * (upTo(1'000'000) - 1) / 1e6; }

private:
    std::mt19937_64 m_random;
};

struct Question {
    DesignRequest request;
    bool offload = false; ///< of all stages
    std::string words;    ///< behind `pipewright predict`
    Design design;
    Prediction prediction;
};

/// What a question may have beside model, cluster and family.
struct Asking {
    bool degrees = true;                      ///< groups of devices
    bool replicas = true;                     ///< copies in the schedule
    std::vector<std::string_view> families{}; ///< empty: all that are made by a rule
};

inline constexpr std::array decoders{"llama-3-8b", "llama-3-70b", "qwen2.5-7b", "qwen3-8b",  "qwen3-32b",
                                     "gpt-1.5b",   "gpt-14.6b",   "gpt-21b",    "gpt-28.3b", "megatron-22b"};
inline constexpr std::array otherModels{"mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3", "bert-large", "vit-l-16"};
inline constexpr std::array nodeClusters{"h100-nodes",     "a100-nodes", "h200-nodes",
                                         "rtx-5090-nodes", "l40s-nodes", "rtx-4090-nodes"};
inline constexpr std::array nodes{"h100-node", "a100-node", "h200-node"};

/// Without its answer. May ask what is refused.
inline Question questionOf(unsigned seed, const Asking& asking)
{
    Draw draw(seed);
    Question question;
    DesignRequest& r = question.request;
    const Family* family = asking.families.empty() ? &draw.of(families()) : findFamily(draw.of(asking.families));
    while (family->search != FamilySearch::None) // its order depends on what is changed here
        family = &draw.of(families());
    const bool onNodes = !draw.oneIn(3);
    r.family = family->name;
    r.devices = 2 * draw.upTo(onNodes ? 8 : 4);
    r.microbatches = r.devices * draw.upTo(2);
    r.model = draw.oneIn(4) ? draw.of(otherModels) : draw.of(decoders);
    r.cluster = onNodes ? draw.of(nodeClusters) : draw.of(nodes);
    r.efficiency = 0.5; // rates by shape are measured, and follow no rule that a relation could know
    std::string& words = question.words;
    words = fmt::format("{} --model {} --cluster {} --efficiency {} --devices {}", r.family, *r.model, *r.cluster,
                        *r.efficiency, r.devices);
    if (asking.replicas && !family->updates && !draw.oneIn(3)) {
        r.replicas = draw.upTo(4);
        r.zero.level = r.replicas > 1 && draw.oneIn(3) ? 1 : 0;
        r.microbatches *= r.replicas;
        words += fmt::format(" --replicas {}{}", r.replicas, r.zero.level > 0 ? " --shard-optimizer" : "");
    }
    words += fmt::format(" --microbatches {}", r.microbatches);
    if (family->dataParallel && draw.oneIn(2)) {
        r.layout = WorkerLayout::Workers;
        words += " --layout workers";
    }
    if (family->chunksSelectable) {
        r.chunks = draw.upTo(3);
        words += fmt::format(" --chunks {}", *r.chunks);
    }
    if (asking.degrees && onNodes && draw.oneIn(2)) {
        Parallelism p;
        p.tensor = 1 << (draw.upTo(4) - 1);
        p.sequence = p.tensor > 1 && draw.oneIn(2);
        p.context = draw.oneIn(2) ? 1 << draw.upTo(4) : 1;
        p.expert = r.model->find("mixtral") == 0 && draw.oneIn(2) ? 4 : 1;
        p.data = p.expert * draw.upTo(3);
        if (r.model->find("mixtral") == 0 && p.members() > 1 && (p.tensor == 1 || p.sequence) && draw.oneIn(2)) {
            p.foldedExperts = true;
            p.expert = static_cast<int>(std::gcd(std::int64_t{8}, p.devicesPerStage()));
        }
        if (p.devicesPerStage() > 1) {
            r.parallel = p;
            words +=
                fmt::format(" --tensor-parallel {}{} --context-parallel {} --expert-parallel {}{} --data-parallel {}",
                            p.tensor, p.sequence ? " --sequence-parallel" : "", p.context, p.expert,
                            p.foldedExperts ? " --folded-experts" : "", p.data);
        }
    }
    const auto change = [&](const char* option, std::optional<int>& field, int value) {
        if (!draw.oneIn(4))
            return;
        field = value;
        words += fmt::format(" {} {}", option, value);
    };
    if (onNodes) {
        change("--devices-per-node", r.nodes.devices, draw.upTo(8));
        change("--cards-per-node", r.nodes.cards, draw.upTo(4));
        change("--nodes-per-switch", r.nodes.perSwitch, draw.upTo(4));
    }
    if (draw.oneIn(3)) {
        const RecomputeChoice choice{draw.oneIn(2) ? Recompute::Block : Recompute::BlockSelective, {}};
        r.recompute = choice;
        words += fmt::format(" --recompute {}", nameOf(choice.kind));
    }
    question.offload = !family->updates && draw.oneIn(4);
    if (draw.oneIn(3) && r.model->find("vit") == std::string::npos) {
        r.sequence = 512 * (*r.model == "bert-large" ? 1 : draw.upTo(4));
        words += fmt::format(" --sequence {}", *r.sequence);
    }
    if (draw.oneIn(3)) {
        r.microbatchSize = draw.upTo(4);
        words += fmt::format(" --microbatch-size {}", *r.microbatchSize);
    }
    return question;
}

/// The design of a request that belongs to the question. Throws Error.
inline Design designOf(const Question& question, const DesignRequest& request)
{
    const Design design = makeDesign(request);
    return question.offload ? withOffload(design, std::vector<bool>(design.costs.stages.size(), true)) : design;
}

/// A relation of a question and its design: what is wrong with it; empty where it holds, nothing where the question is
/// not one for it.
using Answer = std::optional<QString>;
using Relation = std::function<Answer(const Question&, Draw&)>;

/// The first question of which the relation does not hold, of `wanted` that have an answer, or PIPEWRIGHT_TIMES as
/// many; empty when it holds of all. They are new in every run.
inline QString brokenRelation(int wanted, const Asking& asking, const Relation& relation)
{
    bool given = false;
    const int asked = qEnvironmentVariableIntValue("PIPEWRIGHT_SEED", &given);
    if (const int times = qEnvironmentVariableIntValue("PIPEWRIGHT_TIMES"); times > 0)
        wanted *= times;
    unsigned seed = given ? static_cast<unsigned>(asked) : std::random_device()() % 1'000'000'000;
    for (int held = 0, tried = 0; held < (given ? 1 : wanted); ++seed, ++tried) {
        if (tried > (given ? 0 : 200 * wanted))
            return given ? QString() : QString("too few questions are for this relation");
        Question question = questionOf(seed, asking);
        try {
            question.design = designOf(question, question.request);
            if (question.offload)
                question.words += fmt::format(" --offload 0-{}", question.design.costs.stages.size() - 1);
            question.prediction = predict(question.design);
        } catch (const Error&) {
            continue;
        }
        Draw draw(seed + 1);
        Answer wrong;
        try {
            wrong = relation(question, draw);
        } catch (const Error& error) {
            wrong = QString("refused: ") + error.what();
        }
        if (wrong && !wrong->isEmpty())
            return QString("PIPEWRIGHT_SEED=%1, predict %2: %3")
                .arg(seed)
                .arg(QString::fromStdString(question.words), *wrong);
        held += wrong ? 1 : 0;
    }
    return {};
}

inline const Answer holds = QString();
inline const Answer otherQuestion = std::nullopt;

template<typename Value>
QString unequal(const char* what, const Value& one, const Value& other)
{
    return one == other ? QString() : QString::fromStdString(fmt::format("{}: {} and {}", what, one, other));
}

inline QString unlike(const char* what, double one, double other, double share)
{
    const bool alike = std::abs(one - other) <= share * std::max(std::abs(one), std::abs(other));
    return alike ? QString() : QString::fromStdString(fmt::format("{}: {} and {}", what, one, other));
}

} // namespace pipewright::test

#define RELATION_HOLDS(broken)                                                                                         \
    do {                                                                                                               \
        const QString wrong = (broken);                                                                                \
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong));                                                                  \
    } while (false)
