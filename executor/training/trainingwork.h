// SPDX-License-Identifier: GPL-3.0-or-later
// Real training as the runtime's work: binds the buffers of a Program to the mathematics of the stages. Everything that
// a microbatch keeps lives in the Program's buffers; this class holds only input data and losses, and zeroes gradients.
// Sums are made in the order of each device's task list and nowhere else, which is why every synchronous schedule gives
// the bits of the sequential reference for that order. On a device whose memory the host cannot touch, input data is
// copied there and losses are copied back between steps. Where the schedule has replicas, each has its own parameters,
// gradients and optimizer state, and the replicas stay equal bit by bit. With a sharded optimizer a replica has its
// share of the state alone, and copies the parameters that others updated into its own. Where replicas share out
// gradients and parameters, too, the whole of them is in buffers that come and go in a step.
#pragma once

#include "executor/stage/storedstage.h"
#include "executor/training/trainedwork.h"
#include "executor/training/trainingdata.h"

#include <memory>

namespace pipewright {

class TrainingWork final : public TrainedWork {
public:
    /// Throws Error when the workload cannot be run or `layersPerStage` does not fit it. `data` must outlive this.
    /// `batch`: microbatches of an update, over which gradients are averaged; 0: all of them. `recompute`: the
    /// schedule's, per stage.
    TrainingWork(const Workload& workload, const std::vector<int>& layersPerStage, int microbatches,
                 const OptimizerSettings& optimizer, const TrainingData& data, std::uint64_t seed, int batch = 0,
                 const std::vector<Recompute>& recompute = {});

    /// Memory where the host cannot write: input tokens, targets and losses of all microbatches, if a stage there needs
    /// any, and the kept choices of experts.
    Bytes bytesBeside(const Program& program, int device, const Capabilities& capabilities) const override;
    /// Also fills parameters, and zeroes gradients and optimizer state. Throws Error when a buffer of the program does
    /// not have the size that this model needs.
    void prepare(const Program& program, std::span<const Region> regions) override;
    void beginStep(int step) override;
    double endStep(int step) override;
    void compute(const TaskContext& context) override;
    bool repeats(const Task&) const override { return !m_program->versioned(); }
    void update(const TaskContext& context) override;
    Region sharedPart(const Task& reduce, const BufferView& gradients) override;
    void reduce(const TaskContext& context, Region own, Region theirs, bool both) override;
    bool addsUp() const override { return true; }

    void keepChoices() override; ///< on devices whose memory the host cannot touch
    StageValues values(BufferKind kind) const override;
    const VersionedWeights* versions() const override { return m_program->versioned() ? &m_versions : nullptr; }
    std::span<const std::vector<float>> probabilities() const override { return m_probabilities; }

    /// Of the last step: the mean token loss of each microbatch, with the weights that its forwards read.
    std::vector<double> microbatchLosses() const;
    /// Replaces the training data as the source of a microbatch: fills tokens and targets.
    using Feed =
        std::function<void(int step, int microbatch, std::span<std::int32_t> tokens, std::span<std::int32_t> targets)>;
    void setFeed(Feed feed) { m_feed = std::move(feed); }
    void setStart(Start start) { m_start = std::move(start); } ///< before a run is prepared
    /// The listener gets the mean token loss of a microbatch, on the thread of the device with the head. On the host
    /// only.
    void setListener(std::function<void(int microbatch, double loss)> listener) { m_listener = std::move(listener); }

    /// From now on keeps the probabilities that each microbatch's forward predicts, on devices whose memory the host
    /// reads.
    void keepProbabilities() { m_probabilities.resize(m_losses.size()); }
    int stages() const { return static_cast<int>(m_stages.size()); }
    int replicas() const { return m_program->replicas(); } ///< of the prepared program
    /// In fp32, whatever type is stored.
    std::vector<float> parameters(int stage) const { return valuesOf(BufferKind::Parameters, stage); }
    /// Without master copies. For programs with versions of weights, which have no sharded optimizer.
    std::vector<float> optimizerState(int stage) const;
    /// Of the last step, after the reductions over shared parameters and replicas.
    std::vector<float> gradients(int stage, int replica = 0) const
    {
        return valuesOf(BufferKind::Gradients, stage, replica);
    }

private:
    struct Stage {
        StoredStage maths;
        StageOptimizer optimizer;
    };
    /// A device that this process runs, and what it needs where the host cannot touch its memory.
    struct Place {
        Device* device = nullptr; ///< null: the host's memory, without a backend
        bool onHost = true;
        std::unique_ptr<Stream> stream; ///< for what is done between steps
        std::unique_ptr<kernels::Operations> operations;
        std::unique_ptr<Allocation> memory;  ///< tokens and targets of all microbatches, then their losses
        std::unique_ptr<Allocation> staging; ///< the same in the host's memory, so that a step's data is one copy
        bool hasHead = false;
    };
    void preparePlaces();
    /// The ends of the model that have blocks on a device.
    struct Ends {
        bool embedding = false, head = false;
    };
    Ends endsOn(const Program& program, int device) const;
    Bytes textBytes() const;
    void checkSize(const Buffer& buffer) const;
    void checkWorkspace(TaskId task) const;
    void bindCopies();
    void initialise(std::size_t copy);
    Access access(int device) override;
    bool isBf16() const override { return m_stages.front().maths.isBf16(); }
    std::size_t countOf(int stage) const { return at(stage).maths.parameters().count(); }
    std::vector<float> valuesOf(BufferKind kind, int stage, int replica = 0) const;
    void findLastWeightGrads();
    const Place& placeOf(int device) const { return m_places[device]; }
    std::size_t slotBytes() const { return m_tokens.front().size() * sizeof(std::int32_t); }
    Region textOn(const Allocation& memory, std::size_t microbatch, bool targets) const;
    Region lossesOn(const Allocation& memory) const;
    void keepProbabilities(const Task& task, const StageMemory& memory);
    const Stage& at(int stage) const { return m_stages[stage]; }
    /// Where a program has U blocks its devices hold copies of a stage, otherwise its replicas do.
    std::size_t copyIndex(int stage, int holder) const
    {
        return static_cast<std::size_t>(holder) * m_stages.size() + static_cast<std::size_t>(stage);
    }
    int holderOf(int replica, int device) const { return m_program->versioned() ? device : replica; }
    std::size_t savedIndex(int stage, int microbatch) const
    {
        return static_cast<std::size_t>(stage) * m_losses.size() + static_cast<std::size_t>(microbatch);
    }
    StageCopy& copyOf(const Task& task) { return m_copies[copyIndex(task.stage, holderOf(task.replica, task.device))]; }

    std::vector<Stage> m_stages;
    int m_batch;
    VersionedWeights m_versions;
    Feed m_feed;
    Start m_start;
    std::function<void(int, double)> m_listener;
    std::vector<Place> m_places; ///< per device
    /// Per task: whether it is the last weight gradient of a stage. After it, in a stage that holds both embedding and
    /// head, the two gradients of the tied matrix are added; this comes before sums over replicas.
    std::vector<bool> m_sumsTied;
    std::vector<int> m_deviceOfCopy; ///< -1: there is none
    std::vector<StageCopy> m_copies; ///< replica 0's stage 0, stage 1, …, replica 1's …
    int m_sequencePieces;
    std::uint64_t m_seed;
    const TrainingData& m_data;
    std::vector<std::vector<std::int32_t>> m_tokens, m_targets; ///< per microbatch
    std::vector<float> m_losses;                                ///< per microbatch, its share
    std::vector<std::vector<float>> m_probabilities;            ///< likewise, once they are kept
    std::vector<std::int64_t> m_chosen;                         ///< per stage, by choicesOf()
    /// Per stage and microbatch: its SavedUntilWeightGrad, which I also reads on a GPU. It lives until W, which comes
    /// after I on the same device, so the order of that device is enough.
    std::vector<Region> m_savedForWeights;
    std::vector<Region> m_recomputedForWeights; ///< likewise, of stages that recompute
    std::vector<Region> m_reloadedForWeights;   ///< likewise, of stages that offload it to the host
};

} // namespace pipewright
