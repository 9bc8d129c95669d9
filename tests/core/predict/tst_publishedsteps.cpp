// SPDX-License-Identifier: GPL-3.0-or-later
// Step times of runs that others have published, predicted with rates by operation and shape that were measured
// elsewhere. Nothing is fitted on the runs.
#include "core/base/median.h"
#include "core/base/textfile.h"
#include "core/predict/predict.h"
#include "core/predict/publishedruns.h"
#include "testmain.h"
#include "testpaths.h"

#include <QTest>

#include <cmath>
#include <string>
#include <vector>

using namespace pipewright;

namespace {

/// What a prediction may be off by, as a share of the step.
constexpr double dense = 0.08, mixture = 0.12;
/// Outside of these, for what resources/experiments/published-steps-b200.md names.
constexpr double tensorParallel = 0.13, contextParallel = 0.10, fewMicrobatches = 0.15;

struct Run {
    const char* name;
    const char* model;
    int layers;
    int stages, microbatches;
    Parallelism parallel;
    int sequence;
    double milliseconds;
    double allowed;
};

/// Megatron-LM on B200, as SimuMax's authors measured it: see tst_publishedmemory.
const std::vector<Run> runs = {
    {"70B pp2 dp4, 4", "llama-3-70b", 12, 2, 4, {.data = 4}, 4096, 843.0, dense},
    {"70B pp2 dp4, 32", "llama-3-70b", 12, 2, 32, {.data = 4}, 4096, 5436.5, dense},
    {"70B tp2 dp4, 4", "llama-3-70b", 12, 1, 4, {.tensor = 2, .sequence = true, .data = 4}, 4096, 725.5, dense},
    {"70B tp2 dp4, 32", "llama-3-70b", 12, 1, 32, {.tensor = 2, .sequence = true, .data = 4}, 4096, 5376.5, dense},
    {"70B tp4 dp2, 4", "llama-3-70b", 12, 1, 4, {.tensor = 4, .sequence = true, .data = 2}, 4096, 409.8, dense},
    {"70B tp4 dp2, 32", "llama-3-70b", 12, 1, 32, {.tensor = 4, .sequence = true, .data = 2}, 4096, 2964.6, dense},
    {"70B tp8, 4", "llama-3-70b", 12, 1, 4, {.tensor = 8, .sequence = true}, 4096, 280.9, tensorParallel},
    {"70B tp8, 32", "llama-3-70b", 12, 1, 32, {.tensor = 8, .sequence = true}, 4096, 2073.7, tensorParallel},
    {"70B tp2 cp4",
     "llama-3-70b",
     12,
     1,
     4,
     {.tensor = 2, .sequence = true, .context = 4},
     32768,
     1758.0,
     contextParallel},
    {"70B cp8", "llama-3-70b", 12, 1, 4, {.context = 8}, 32768, 1768.1, contextParallel},
    {"405B pp2 dp4, 4", "llama-3.1-405b", 4, 2, 4, {.data = 4}, 4096, 1074.6, dense},
    {"DeepSeek-V2 ep8, 4", "deepseek-v2", 4, 1, 4, {.expert = 8, .data = 8}, 4096, 366.6, mixture},
    {"DeepSeek-V2 ep8, 32", "deepseek-v2", 4, 1, 32, {.expert = 8, .data = 8}, 4096, 2721.3, mixture},
    {"DeepSeek-V2 pp2 ep4, 4", "deepseek-v2", 4, 2, 4, {.expert = 4, .data = 4}, 4096, 282.1, fewMicrobatches},
    {"DeepSeek-V2 pp2 ep4, 32", "deepseek-v2", 4, 2, 32, {.expert = 4, .data = 4}, 4096, 1727.7, mixture},
};

double predictedMilliseconds(const Run& run, bool rated)
{
    ModelShape shape = trainedOnB200(run.model, run.layers);
    shape.sequence = run.sequence;
    shape.parallel = run.parallel;
    const Design design = published(shape, "1f1b", run.stages, run.microbatches, "b200-nodes", rated);
    return static_cast<double>(predict(design).metrics.makespan) / 1e6;
}

double errorOf(const Run& run, bool rated)
{
    return predictedMilliseconds(run, rated) / run.milliseconds - 1;
}

double medianError(bool rated)
{
    std::vector<double> errors;
    for (const Run& run : runs)
        errors.push_back(std::abs(errorOf(run, rated)));
    return medianOf(errors);
}

} // namespace

class PublishedStepsTest : public QObject {
    Q_OBJECT

private slots:
    void megatronOnB200_data()
    {
        QTest::addColumn<int>("run");
        for (int i = 0; i < static_cast<int>(runs.size()); ++i)
            QTest::newRow(runs[static_cast<std::size_t>(i)].name) << i;
    }
    void megatronOnB200()
    {
        QFETCH(int, run);
        const Run& of = runs[static_cast<std::size_t>(run)];
        const auto percent = [&](bool rated) {
            const double error = 100 * errorOf(of, rated);
            return QString(error > 0 ? "+" : "") + QString::number(error, 'f', 1);
        };
        const QString line = QString("| %1 | %2 | %3 | %4 % | %5 | %6 % |")
                                 .arg(of.name)
                                 .arg(of.milliseconds, 0, 'f', 1)
                                 .arg(predictedMilliseconds(of, false), 0, 'f', 1)
                                 .arg(percent(false))
                                 .arg(predictedMilliseconds(of, true), 0, 'f', 1)
                                 .arg(percent(true));
        QVERIFY2(std::abs(errorOf(of, true)) < of.allowed, qPrintable(line));
        const std::string page =
            readTextFile(std::string(PIPEWRIGHT_SOURCE_DIR) + "/resources/experiments/published-steps-b200.md");
        QVERIFY2(page.find(line.toStdString()) != std::string::npos, qPrintable(line));
    }

    void ratesComeCloserThanOneEfficiency()
    {
        const double by = medianError(true);
        QVERIFY2(by < 0.09 && by < medianError(false) / 2, qPrintable(QString::number(by)));
    }
};

PIPEWRIGHT_TEST(PublishedStepsTest, NoApplication)
#include "tst_publishedsteps.moc"
