// SPDX-License-Identifier: GPL-3.0-or-later
// One question asked in two ways has one answer: from a file, as another tool's schedule, among all families, with the
// costs of another schedule, and as text.
#include "app/program.h"
#include "core/exchange/exchange.h"
#include "core/files/designfile.h"
#include "core/predict/predict.h"
#include "core/predict/throughput.h"
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

QString differs(const Design& one, const Design& other)
{
    const Prediction first = predict(one), second = predict(other);
    const QString wrong = unequal("the step", first.metrics.makespan, second.metrics.makespan);
    return wrong.isEmpty() ? unequal("the fullest device", fullest(first), fullest(second)) : wrong;
}

struct Asked {
    Design design;
    Prediction prediction;
};

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
};

PIPEWRIGHT_TEST(TwoWaysTest, NoApplication)
#include "tst_twoways.moc"
