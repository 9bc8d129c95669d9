// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/torch/torchexperiment.h"

#include "core/design/designbuilder.h"
#include "core/predict/predict.h"
#include "core/schedule/weightplan.h"
#include "executor/run/trainabledesign.h"
#include "executor/torch/modulefacts.h"
#include "executor/torch/moduleprogram.h"
#include "executor/torch/python.h"
#include "executor/torch/torchcopies.h"
#include "executor/torch/torchjob.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipewright {

namespace {

using Json = nlohmann::json;

/// A planned run: what is known before it begins, and its part of the job.
struct Planned {
    ExperimentRun run;
    JsonValue job;
};

Planned planned(const Design& given, std::size_t number, std::uint64_t seed, bool reference,
                const TorchExperimentOptions& options)
{
    TorchOptions torch;
    torch.module = options.module;
    const Design design = reference ? given : withUpdates(given, options.updates);
    const bool updates = !reference && hasUpdates(design.schedule);
    requirePossible(design, torch);
    if (countsCopies(design))
        throw Error("model.parallel.data", "an experiment trains one copy of the pipeline",
                    "make the design without --data-parallel");
    const Prediction prediction = predict(design);
    Planned plan;
    ExperimentRun& run = plan.run;
    run.design = number;
    run.reference = reference;
    run.name = reference ? "sequential" : given.name;
    run.seed = seed;
    run.devices = reference ? 1 : design.schedule.devices();
    run.stages = design.schedule.stages();
    run.rule = reference ? "sequential" : updates ? nameOf(design.schedule.weightPolicy.rule) : "flush";
    run.optimizer = nameOf(design.schedule.weightPolicy.optimizer);
    run.microbatchesPerUpdate = microbatchesPerUpdate(prediction.program);
    plan.job = {{"name", run.name},
                {"seed", seed},
                {"stages", run.stages},
                {"layers_per_stage", design.layersPerStage.empty() ? JsonValue() : JsonValue(design.layersPerStage)},
                {"partition_of_module", design.workload && !hasStandInModel(design)},
                {"updates", options.updates},
                {"batch", run.microbatchesPerUpdate},
                {"microbatches", options.updates * run.microbatchesPerUpdate},
                {"optimizer", factsOf(design.schedule.weightPolicy.optimizer).name},
                {"any_optimizer", !updates}};
    if (!updates)
        return plan;
    run.weights = weightReport(prediction.program);
    plan.job["versions"] = versionsOf(design);
    int made = 0;
    for (const WeightUse& use : prediction.program.weights)
        made = std::max(made, use.update + 1);
    plan.job["microbatches"] = design.schedule.microbatches;
    if (made != options.updates)
        throw Error(given.name, fmt::format("the design has {} updates, and {} are asked for", made, options.updates),
                    fmt::format("use --steps {}, or a design as its family makes it", made));
    if (prediction.metrics.makespan > 0)
        run.predictedUpdatesPerSecond = 1e9 * options.updates / static_cast<double>(prediction.metrics.makespan);
    return plan;
}

void take(const Json& report, ExperimentRun& run)
{
    for (const Json& loss : report.at("losses"))
        run.losses.push_back(reportedNumber(loss));
    for (const Json& accuracy : report.value("accuracies", Json::array()))
        run.accuracies.push_back(reportedNumber(accuracy));
    const std::size_t last = std::max<std::size_t>(1, run.losses.size() / 10);
    run.finalLoss = std::accumulate(run.losses.end() - static_cast<std::ptrdiff_t>(last), run.losses.end(), 0.0)
                    / static_cast<double>(last);
    run.optimizer = report.at("optimizer"); // the file's own, whatever the design assumes
    run.heldBack = !report.at("held_back_loss").is_null();
    run.heldBackLoss = reportedNumber(report.at("held_back_loss"));
    run.heldBackAccuracy = reportedNumber(report.at("held_back_accuracy"));
    run.classifies = report.at("held_back_accuracy").is_number();
    run.readsAgree = report.at("reads_agree");
    run.rowsPerUpdate = report.at("rows");
    run.updatesPerSecond = static_cast<double>(run.losses.size()) / report.at("seconds").get<double>();
    const std::vector<int> copies = report.at("copies");
    const std::vector<Bytes> bytes = report.at("weight_bytes");
    for (std::size_t stage = 0; stage < copies.size(); ++stage)
        run.weightBytes.push_back(copies[stage] * bytes[stage]);
    for (const Json& error : report.at("prediction_rmse"))
        run.predictionErrors.push_back(reportedNumber(error));
    for (const Json& error : report.at("unpredicted_rmse"))
        run.staleErrors.push_back(reportedNumber(error));
}

/// Turns the reports of the process into runs.
class ExperimentReports {
public:
    ExperimentReports(std::vector<Planned>& runs, const TorchExperimentOptions& options)
        : m_runs(runs), m_options(options)
    {
        experiment.planned = static_cast<int>(runs.size());
    }

    void take(const Json& report)
    {
        Diagnostics notes = notesOf(factsOfReport(report));
        if (report.contains("note"))
            notes.push_back({Severity::Note, "module", report.at("note").get<std::string>(), {}});
        if (!notes.empty() && m_options.tell)
            m_options.tell(notes);
        if (report.contains("update"))
            tell(report);
        if (report.contains("report"))
            finish(m_runs.at(report.at("run")).run, report.at("report"));
    }

    Experiment experiment;

private:
    void tell(const Json& report) const
    {
        if (!m_options.progress)
            return;
        const int number = report.at("run");
        const ExperimentRun& run = m_runs.at(static_cast<std::size_t>(number)).run;
        const Json& loss = report.at("loss");
        m_options.progress({number, experiment.planned, run.name, run.seed, report.at("update"), m_options.updates,
                            reportedNumber(loss)});
    }

    void finish(ExperimentRun& run, const Json& report)
    {
        pipewright::take(report, run);
        const std::string bits = report.at("bits");
        if (run.reference)
            m_reference = bits;
        else
            run.bitEqual = bits == m_reference;
        experiment.runs.push_back(run);
        if (m_options.finished)
            m_options.finished(run);
    }

    std::vector<Planned>& m_runs;
    const TorchExperimentOptions& m_options;
    std::string m_reference; ///< the reference of this seed, which runs first
};

} // namespace

Experiment runTorchExperiment(const std::vector<Design>& designs, const TorchExperimentOptions& options)
{
    if (designs.empty())
        throw Error("designs", "there is nothing to compare", "name at least one design");
    requireModuleFile(options.module);
    std::vector<Planned> runs;
    for (int seed = 1; seed <= options.seeds; ++seed) {
        runs.push_back(planned(designs.front(), 0, static_cast<std::uint64_t>(seed), true, options));
        for (std::size_t i = 0; i < designs.size(); ++i)
            runs.push_back(planned(designs[i], i + 1, static_cast<std::uint64_t>(seed), false, options));
    }
    JsonValue job{{"common", {{"module", options.module}, {"synthetic", nullptr}, {"steps", 1}}}};
    for (Planned& run : runs)
        job["runs"].push_back(std::move(run.job));
    const ModuleProgram program{"pipewright.experiment", "experiment", options.python, std::move(job), options.cancel};
    ExperimentReports reports(runs, options);
    reports.experiment.cancelled = !program.run([&reports](const Json& report) { reports.take(report); });
    return std::move(reports.experiment);
}

} // namespace pipewright
