// SPDX-License-Identifier: GPL-3.0-or-later
// One question asked in two ways has one answer: from a file, as another tool's schedule, among all families, with the
// costs of another schedule, and as text.
#include "app/program.h"
#include "core/exchange/exchange.h"
#include "core/files/designfile.h"
#include "core/predict/predict.h"
#include "core/predict/throughput.h"
#include "core/search/tradeoffs.h"
#include "relations/question.h"
#include "testmain.h"

using namespace pipewright;
using namespace pipewright::test;

namespace {

Bytes fullest(const Prediction& prediction)
{
    Bytes most = 0;
    for (const DeviceMetrics& device : prediction.metrics.devices)
        most = std::max(most, device.peakBytes);
    return most;
}

/// How far two steps may be apart, as a share: pins are rounded, which may change who is ready first at a bus.
double roundingOf(const Prediction& prediction, const Schedule& schedule)
{
    return schedule.pins.empty() ? 0 : prediction.program.busOfLink.empty() ? 1e-6 : 1e-2;
}

QString differs(const Design& one, const Design& other)
{
    const Prediction first = predict(one), second = predict(other);
    const QString wrong = unlike("the step", double(first.metrics.makespan), double(second.metrics.makespan),
                                 roundingOf(first, one.schedule));
    return wrong.isEmpty() ? unequal("the fullest device", fullest(first), fullest(second)) : wrong;
}

struct Asked {
    Design design;
    Prediction prediction;
};

/// The same question about another family that is made by a rule; nothing where it is refused.
std::optional<Asked> asFamily(const Question& question, const Family& family, std::optional<int> chunks)
{
    DesignRequest request = question.request;
    request.family = family.name;
    request.chunks = chunks;
    request.layout = WorkerLayout::Pipeline;
    try {
        Asked asked{designOf(question, request), {}};
        asked.prediction = predict(asked.design);
        return asked;
    } catch (const Error&) {
        return std::nullopt;
    }
}

} // namespace

class TwoWaysTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aFileHoldsTheDesign()
    {
        RELATION_HOLDS(brokenRelation(60, {}, [](const Question& question, Draw&) -> Answer {
            const Design& design = question.design;
            const Design again = designFromJson(designToJson(design), "again.json");
            return again == design ? differs(design, again) : QString("the file holds another design");
        }));
    }

    void aScheduleComesBackFromPyTorchsFile()
    {
        RELATION_HOLDS(brokenRelation(30, {.degrees = false}, [](const Question& question, Draw&) -> Answer {
            const Design& design = question.design;
            std::string text;
            try {
                text = exportFormat("pytorch-csv").write(design, {}).text;
            } catch (const Error&) { // what PyTorch has no letters for
                return otherQuestion;
            }
            if (findFamily(question.request.family)->updates || design.schedule.replicas() > 1 || question.offload
                || !design.schedule.recompute.empty() || !design.schedule.pins.empty()
                || !design.schedule.overlaps.empty() || design.schedule.sequencePieces > 1)
                return otherQuestion;
            Design again = design;
            again.schedule = importDesign(text, "schedule.csv").design.schedule;
            return differs(design, again);
        }));
    }

    /// Every row of `predict --families` is what the family says when it is asked for: optimizer, recomputation and
    /// replicas included.
    void aRowOfFamiliesIsTheFamily()
    {
        RELATION_HOLDS(brokenRelation(8, {}, [](const Question& question, Draw&) -> Answer {
            const Design& design = question.design;
            if (design.schedule.sequencePieces > 1 || findFamily(question.request.family)->updates)
                return otherQuestion;
            for (const TradeOff& row : rankedFamilies(design, RankBy::Makespan, {})) {
                const Family& family = *row.candidate.family;
                if (!row.possible || family.search != FamilySearch::None)
                    continue;
                const std::optional<Asked> asked = asFamily(question, family, row.candidate.choice.chunks);
                if (!asked)
                    continue;
                const Prediction& prediction = asked->prediction;
                QString wrong = unlike("the step", double(prediction.metrics.makespan), double(row.makespan),
                                       roundingOf(prediction, asked->design.schedule));
                if (wrong.isEmpty())
                    wrong = unequal("the fullest device", fullest(prediction), row.peakBytes);
                if (!wrong.isEmpty())
                    return QString::fromStdString(row.candidate.label()) + ", asked for and in the table: " + wrong;
            }
            return holds;
        }));
    }

    void costsOfAnotherScheduleAreThoseOfTheModel()
    {
        RELATION_HOLDS(brokenRelation(40, {}, [](const Question& question, Draw& draw) -> Answer {
            const Design& design = question.design;
            const Family& family = draw.of(families());
            if (family.search != FamilySearch::None || design.schedule.sequencePieces > 1)
                return otherQuestion;
            const std::optional<int> chunks = family.chunksSelectable ? std::optional(draw.upTo(3)) : std::nullopt;
            const std::optional<Asked> asked = asFamily(question, family, chunks);
            if (!asked)
                return otherQuestion;
            DesignRequest carried = requestOf(question.request, family, chunks);
            carried.costsFrom = design;
            const QString wrong = differs(asked->design, makeDesign(carried));
            return wrong.isEmpty() ? wrong
                                   : QString("%1 and the same with --costs-from: ").arg(family.name.data()) + wrong;
        }));
    }

    void theProgramSaysWhatItComputes()
    {
        const Workplace work;
        RELATION_HOLDS(brokenRelation(6, {}, [&](const Question& question, Draw&) -> Answer {
            const QString words = QString::fromStdString(question.words);
            const Outcome json = work.run("predict --json " + words);
            const double makespan = json.json()["makespan_ns"].toDouble();
            if (QString wrong = unlike("inline", double(question.prediction.metrics.makespan), makespan, 0);
                !wrong.isEmpty())
                return wrong + json.errors;
            const Outcome made = work.run("new --force -o file.json " + words);
            const Outcome file = work.run("predict --json file.json");
            if (file.json()["makespan_ns"].toDouble() != makespan || file.json()["bubble"] != json.json()["bubble"]
                || file.json()["per_device"] != json.json()["per_device"])
                return "another answer from a file " + made.errors + file.errors;
            const QString text = work.run("predict file.json").output;
            if (!text.contains(QString::fromStdString(formatDuration(question.prediction.metrics.makespan))))
                return "another step as text";
            return holds;
        }));
    }

private:
    static DesignRequest requestOf(const DesignRequest& asked, const Family& family, std::optional<int> chunks)
    {
        DesignRequest request;
        request.family = family.name;
        request.devices = asked.devices;
        request.microbatches = asked.microbatches;
        request.replicas = asked.replicas;
        request.zero = asked.zero;
        request.chunks = chunks;
        return request;
    }
};

PIPEWRIGHT_TEST(TwoWaysTest, NoApplication)
#include "tst_twoways.moc"
