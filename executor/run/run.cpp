// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/run.h"

#include "core/base/median.h"
#include "core/base/outputfile.h"
#include "core/design/stagecosts.h"
#include "core/model/parallelism.h"
#include "core/model/transformer.h"
#include "core/predict/busqueues.h"
#include "core/program/compile.h"
#include "core/schedule/weightplan.h"
#include "executor/host/hostbackend.h"
#include "executor/mpi/rankrecords.h"
#include "executor/run/backendcheck.h"
#include "executor/run/gradientcheck.h"
#include "executor/run/grouprun.h"
#include "executor/run/rundump.h"
#include "executor/run/runsetup.h"
#include "executor/run/runtrace.h"
#include "executor/run/runweights.h"
#include "executor/runtime/faultspec.h"
#include "executor/runtime/runtime.h"
#include "executor/runtime/timedwork.h"
#include "executor/stage/kernelsettings.h"
#include "executor/training/trainingdata.h"

#include <algorithm>
#include <fmt/format.h>

namespace pipewright {

namespace {

/// What training needs beside the runtime; absent for timed maths.
struct Training {
    std::unique_ptr<TrainingData> data;
    OptimizerSettings optimizer;
};

class Execution {
public:
    Execution(const Design& design, const RunOptions& options)
        : m_options(options), m_trains(trainsOrThrow(design, options, m_result.notes)),
          m_backend(options.backend == "cuda" ? backendFor(options, devicesOfRun(design, meansOf(options))) : nullptr),
          m_groups(groupRunOf(design, options, m_trains, m_backend.get())), m_design(designOf(design, options)),
          m_program(m_groups ? m_groups->members.program
                             : compile(m_design.schedule, m_design.costs, m_design.dataflow))
    {
        if (!m_backend)
            m_backend = backendFor(options, static_cast<int>(m_program.devices.size()));
        m_peers = m_backend->peers();
        if (options.steps < 1)
            throw Error("steps", "a run has at least one step");
        requireParameters(options, m_trains);
        for (const Fault& fault : m_groups ? options.runtime.faults : std::vector<Fault>())
            requirePlace(fault, m_program, options.steps, "--inject");
        if (m_trains && !m_groups)
            fitToDevices(m_design, m_program, *m_backend, m_result.notes);
        if (m_groups && m_trains && options.runtime.captureBlocks)
            requireCapture(*m_groups, *m_backend);
        if (m_trains && !m_groups && m_design.workload->shape.dataType == DataType::Bf16
            && !m_design.workload->shape.attentionSinks)
            m_backend->expectAttention(attentionsOf(m_design.workload->shape));
        m_result.isRankZero = !m_peers || m_peers->self() == 0;
        for (int d = 0; m_peers && d < m_peers->count(); ++d) {
            m_result.clockOffsets.push_back(m_peers->clockOffset(d));
            m_result.clockUncertainties.push_back(m_peers->clockUncertainty(d));
        }
        m_result.backend = m_backend->name();
        m_result.devices = m_backend->devices();
        m_result.groups.assign(m_program.groupOfDevice.begin(), m_program.groupOfDevice.end());
        m_result.predictedPeakBytes = peaksOf(m_program);
        if (m_groups && m_trains && (m_peers || options.backend == "cuda") && m_result.isRankZero)
            noteOtherRoom(*m_groups, design, m_peers && !options.gpus, m_result.notes);
        makeWork();
    }

    RunResult run()
    {
        std::optional<Runtime> runtime;
        try {
            createTrace();
            runtime.emplace(m_program, *m_backend, *m_work, m_recorder.get(), runtimeOptions());
            if (m_peers)
                m_peers->barrier(); // every process has planned and allocated
            if (m_trace)
                m_trace->begin();
        } catch (const std::exception& error) {
            if (m_peers)
                m_peers->fail(error.what());
            discardTrace();
            throw;
        }
        doSteps(*runtime);
        m_result.takeMemory(m_program, *runtime, *m_backend);
        if (m_recorder) {
            m_recorder->finish();
            m_result.droppedRecords += m_recorder->dropped();
        }
        if (const std::int64_t untimed = m_backend->untimedRecords(); untimed > 0) {
            const auto what = fmt::format("{} records of the GPUs' recorder have no time, and are left out", untimed);
            m_result.notes.push_back({Severity::Note, "trace", what, {}});
        }
        if (const std::string what = m_backend->recorderNote(); !what.empty())
            m_result.notes.push_back({Severity::Note, "trace", what, {}});
        const Diagnostics ofMaths = m_backend->takeNotes();
        m_result.notes.insert(m_result.notes.end(), ofMaths.begin(), ofMaths.end());
        if (!m_result.cancelled && m_trained)
            bringResult();
        if (!m_result.cancelled && m_peers)
            mergeResults();
        if (!m_result.cancelled && m_result.isRankZero) {
            const Diagnostics why = whyNotAsPredicted(m_result.memory, m_result.heldBytes);
            m_result.notes.insert(m_result.notes.end(), why.begin(), why.end());
        }
        if (!m_result.cancelled && m_trained && m_trained->versions())
            checkReads(*m_trained->versions(), m_program, m_result.notes);
        if (!m_result.cancelled && m_check && m_result.isRankZero) {
            m_result.gradients = m_check->compare();
            noteOfGradients(*m_result.gradients, m_result.notes);
        } else {
            m_result.gradients = notCompared(m_result, m_trains, m_program.versioned());
        }
        if (!m_result.cancelled && m_result.isRankZero)
            writeParameters();
        if (m_trace)
            m_trace->finish(m_result, m_groups ? m_groups->shownOf(m_result.peakBytes) : m_result.peakBytes);
        return std::move(m_result);
    }

    std::vector<HeldMemory> heldMemory()
    {
        return predictMemory(m_program, m_options.runtime.eagerSlots, *m_work, *m_backend);
    }

private:
    Design designOf(const Design& design, const RunOptions& options) const
    {
        if (m_groups)
            return m_groups->design;
        return m_trains ? trainableDesign(design) : scaledDesign(design, options);
    }

    void makeWork()
    {
        if (!m_trains) {
            m_durations = m_groups ? m_groups->members.durations : taskDurations(m_program, m_design.costs);
            const bool isVirtual = m_options.clock == RunOptions::Clock::Virtual;
            const bool burns = !isVirtual && m_options.maths == RunOptions::Maths::Synthetic;
            m_result.maths = burns ? "synthetic" : "timed";
            auto work = std::make_unique<TimedWork>(m_groups ? m_durations : workTimes(m_program, m_design.costs),
                                                    isVirtual ? TimedWork::Pace::Virtual
                                                    : burns   ? TimedWork::Pace::Burn
                                                              : TimedWork::Pace::Sleep);
            if (!isVirtual && !m_groups && runsPartsOnTwoThreads(meansOf(m_options)))
                work->runOnTwoStreams(m_program, partedPairs(m_program, m_design.costs));
            m_work = std::move(work);
            return;
        }
        m_result.maths = "training";
        const Workload& workload = *m_design.workload;
        OptimizerSettings optimizer;
        optimizer.kind = m_program.versioned() ? m_program.weightPolicy.optimizer : workload.optimizer;
        m_training.emplace(
            Training{loadData(m_options, workload.shape, m_program.microbatches, m_result.notes), optimizer});
        TrainedWork::Start start;
        if (!m_options.weights.empty())
            start = startFromWeights(workload, m_options.weights, m_result.notes);
        if (!m_options.saveWeights.empty())
            checkWeightsOutput(workload, m_options.saveWeights, m_options.overwriteTrace);
        if (!m_options.dump.empty()) {
            checkOutput(m_options.dump, m_options.overwriteTrace);
            m_dump.emplace(m_design, m_groups ? m_groups->groups : m_program, m_training->optimizer, *m_training->data,
                           m_options.steps);
        }
        if (m_groups) {
            auto work = std::make_unique<sharding::GroupTraining>(
                std::make_unique<sharding::DesignModel>(m_design, *m_training->data, m_options.seed, std::move(start),
                                                        microbatchesPerUpdate(m_program)),
                m_groups->stages, optimizer, m_design.schedule.recompute);
            take(std::move(work));
            return;
        }
        auto work = std::make_unique<TrainingWork>(workload, m_design.layersPerStage, m_program.microbatches, optimizer,
                                                   *m_training->data, m_options.seed, microbatchesPerUpdate(m_program),
                                                   m_program.recompute);
        work->setStart(std::move(start));
        if (m_dump)
            work->keepProbabilities();
        take(std::move(work));
    }

    template<class Work>
    void take(std::unique_ptr<Work> work)
    {
        if (m_options.checkGradients) {
            work->keepChoices();
            m_check = checkOf(*work, {m_design, m_program, m_training->optimizer, *m_training->data,
                                      m_options.steps - 1, gradientBoundOf(m_options, m_design.workload->shape)});
        }
        m_trained = work.get();
        m_work = std::move(work);
    }

    RuntimeOptions runtimeOptions() const
    {
        RuntimeOptions options = m_options.runtime;
        options.virtualClock = m_options.clock == RunOptions::Clock::Virtual;
        options.emulateLinks = !m_trains && !options.virtualClock;
        options.durations = m_durations;
        if (!m_trains && !m_groups) {
            options.hostGaps = hostGaps(m_program, m_design.costs);
            options.busUses = busUses(m_program, m_design.costs);
        }
        return options;
    }

    void createTrace()
    {
        if (m_options.trace.empty())
            return;
        if (!m_result.isRankZero) {
            m_posting.emplace(*m_peers);
            createRecorder(*m_posting);
            return;
        }
        TraceHeader header{m_result.backend, m_result.maths, {}, 0};
        for (int d = 0; d < (m_groups ? m_design.schedule.devices() : m_backend->devices()); ++d)
            header.deviceNames.push_back(m_groups ? m_groups->nameOf(d, *m_backend) : m_backend->device(d).name());
        m_trace.emplace(m_options.trace, m_options.overwriteTrace, m_design, m_groups ? m_groups->groups : m_program,
                        std::move(header), m_options.tell);
        if (m_groups)
            m_groupSink.emplace(*m_trace, *m_groups);
        RecordSink& sink = m_groupSink ? static_cast<RecordSink&>(*m_groupSink) : *m_trace;
        if (m_peers)
            m_gathering.emplace(*m_peers, sink);
        createRecorder(m_gathering ? static_cast<RecordSink&>(*m_gathering) : sink);
        m_result.trace = m_options.trace;
    }

    void createRecorder(RecordSink& sink)
    {
        m_recorder = std::make_unique<Recorder>(sink, m_backend->devices(),
                                                std::max<std::size_t>(4096, 4 * recordsPerStep(m_program)));
        if (const std::string why = m_backend->startRecording(); !why.empty())
            m_result.notes.push_back({Severity::Note, "trace",
                                      "blocks are timed by events, without their kernels: " + why,
                                      "end other profilers, or name CUPTI's folder with --cuda-libraries"});
    }

    /// Brings the buffers of one kind to the host's memory of rank 0; all processes call it at the
    /// same place.
    void bring(BufferKind kind)
    {
        m_trained->fetch(kind);
        if (!m_peers)
            return;
        postBuffers(
            *m_peers, m_program, [this](BufferId buffer) { return m_trained->mirrorOf(buffer); }, kind);
        m_peers->barrier();
        if (m_result.isRankZero)
            takeMessages();
    }

    /// The same for the choices of experts.
    void bringChoices()
    {
        KeptChoices* const choices = m_trained->choices();
        if (choices)
            choices->fetch();
        if (!choices || !m_peers)
            return;
        for (const TaskId task : choices->here())
            postChoices(*m_peers, task, choices->of(task));
        m_peers->barrier();
        if (m_result.isRankZero)
            takeMessages();
    }

    /// What is compared and written at the end.
    void bringResult()
    {
        if (m_check) {
            bring(m_trained->kindOfResult());
            bringChoices();
        }
        if (m_dump || !m_options.saveWeights.empty())
            bring(m_trained->kindOfParameters());
        if (m_dump)
            bring(m_trained->kindOfGradients());
    }

    /// Takes the messages that have arrived. A process that is ahead may already have sent its summary.
    void takeMessages()
    {
        const auto summaries = unpack(
            m_gathering ? m_gathering->takeOthers() : m_peers->takeMessages(),
            [this](BufferId buffer) {
                return m_trained && buffer < m_program.buffers.size() ? m_trained->mirrorOf(buffer) : Region{};
            },
            [this](TaskId task) {
                KeptChoices* const choices = m_trained ? m_trained->choices() : nullptr;
                return choices ? choices->of(task) : std::span<std::int32_t>();
            });
        m_summaries.insert(m_summaries.end(), summaries.begin(), summaries.end());
    }

    void mergeResults()
    {
        const std::size_t self = m_peers->self();
        postSummary(*m_peers, {m_result.peakBytes[self], m_result.heldBytes[self],
                               m_result.hostBytes.empty() ? 0 : m_result.hostBytes[self], m_result.memory[self],
                               m_result.droppedRecords, m_result.recorder});
        m_peers->barrier();
        if (!m_result.isRankZero)
            return;
        if (m_gathering)
            m_gathering->commit(); // the last records: all recorders have ended
        takeMessages();
        for (const auto& [from, summary] : m_summaries) {
            m_result.peakBytes[from] = summary.peak;
            m_result.heldBytes[from] = summary.held;
            if (!m_result.hostBytes.empty())
                m_result.hostBytes[from] = summary.hostPeak;
            m_result.memory[from] = summary.memory;
            m_result.droppedRecords += summary.dropped;
            m_result.recorder.add(summary.recorder);
        }
    }

    /// Drops the trace of a run that could not start.
    void discardTrace()
    {
        m_recorder.reset();
        m_gathering.reset();
        m_trace.reset();
    }

    void doSteps(Runtime& runtime)
    {
        // For progress: the reference does the work of all devices for one step on one thread.
        const double checkWeight = m_check ? m_result.devices : 0;
        dumpParameters("first");
        for (int step = 0; step < m_options.steps; ++step) {
            if (m_check && step + 1 == m_options.steps) {
                for (const BufferKind kind : m_trained->kindsOfStart())
                    bring(kind);
                if (m_result.isRankZero)
                    m_check->begin();
            }
            if (step + 1 == m_options.steps)
                dumpParameters("last");
            if (m_recorder)
                m_recorder->makeRoom(recordsPerStep(m_program));
            const StepOutcome outcome = runtime.runStep(step);
            if (outcome.cancelled) {
                m_result.cancelled = true;
                m_result.notes.push_back({Severity::Note, "step " + std::to_string(step), "cancelled", {}});
                return;
            }
            m_result.stepTimes.push_back(outcome.end - outcome.start);
            m_result.losses.push_back(outcome.loss);
            m_result.coreWaits.push_back(outcome.coreWait);
            if (m_dump)
                m_dump->addLoss(outcome.loss);
            if (std::vector<GpuRecord> seen; m_recorder) {
                m_result.droppedRecords += m_backend->takeRecords(step, seen);
                m_result.recorder.add(seen);
                m_recorder->record(std::move(seen));
                m_recorder->record(m_work->takeParts());
                m_recorder->record(StepRecord{step, outcome.start, outcome.end, outcome.loss, outcome.coreWait});
            }
            if (m_posting) // keeps this step's records if the process ends during the next
                m_recorder->flush();
            if (m_options.progress) {
                const double done = step + 1, all = m_options.steps + checkWeight;
                const auto left = static_cast<Nanoseconds>((all - done) * double(medianOf(m_result.stepTimes)));
                m_options.progress({done / all, step + 1, outcome.loss, m_result.stepTimes.back(), left});
            }
        }
    }

    void dumpParameters(const char* when)
    {
        if (m_dump)
            bring(m_trained->kindOfParameters());
        if (m_dump && m_result.isRankZero)
            m_dump->addParameters(when, m_trained->values(BufferKind::Parameters));
    }

    /// Writes the parameters after the last step, and the dump.
    void writeParameters()
    {
        if (!m_dump && m_options.saveWeights.empty())
            return;
        const StageValues parameters = m_trained->values(BufferKind::Parameters);
        if (!m_options.saveWeights.empty())
            saveWeights(parameters, *m_design.workload, m_options.saveWeights, m_options.overwriteTrace);
        if (!m_dump)
            return;
        m_dump->addParameters("after", parameters);
        m_dump->addProbabilities(m_trained->probabilities());
        if (!m_program.versioned())
            m_dump->addGradients(m_trained->values(BufferKind::Gradients));
        m_dump->write(m_options.dump, m_options.overwriteTrace);
    }

    const RunOptions& m_options;
    RunResult m_result;
    bool m_trains;
    std::unique_ptr<Backend> m_backend; ///< with GPUs it is made before the groups, whose memory depends on it
    std::optional<GroupRun> m_groups;
    Design m_design;
    Program m_program;
    Peers* m_peers = nullptr;
    std::vector<Nanoseconds> m_durations;
    std::optional<Training> m_training;
    std::unique_ptr<StageWork> m_work;
    TrainedWork* m_trained = nullptr;       ///< the same; null: its blocks are timed
    std::unique_ptr<LastStepCheck> m_check; ///< null: it is not asked for, or blocks are timed
    std::optional<RunDump> m_dump;
    std::optional<RunTrace> m_trace;
    std::optional<GatheringSink> m_gathering;             ///< on process 0 of several
    std::vector<std::pair<int, RankSummary>> m_summaries; ///< from the other processes
    std::optional<PostingSink> m_posting;                 ///< on the other processes
    std::optional<GroupSink> m_groupSink;
    std::unique_ptr<Recorder> m_recorder; ///< destroyed before the trace it writes to
};

} // namespace

RunResult run(const Design& design, const RunOptions& options)
{
    return Execution(design, options).run();
}

std::vector<HeldMemory> heldMemory(const Design& design, const RunOptions& options)
{
    return Execution(design, options).heldMemory();
}

} // namespace pipewright
