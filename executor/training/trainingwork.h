// SPDX-License-Identifier: GPL-3.0-or-later
// Real training as the runtime's work: binds the buffers of a Program to the mathematics of the stages. Everything that
// a microbatch keeps lives in the Program's buffers; this class holds only input data and losses, and zeroes gradients.
// Sums are made in the order of each device's task list and nowhere else, which is why every synchronous schedule gives
// the bits of the sequential reference for that order. On a device whose memory the host cannot touch, input data is
// copied there and losses are copied back between steps, and values that the host asks for are copied into mirrors.
// Where the schedule has replicas, each has its own parameters, gradients and optimizer state, and the replicas stay
// equal bit by bit. With a sharded optimizer a replica has its share of the state alone, and copies the parameters that
// others updated into its own.
#pragma once

#include "core/schedule/replicas.h"
#include "executor/runtime/stagework.h"
#include "executor/stage/storedstage.h"
#include "executor/training/keptchoices.h"
#include "executor/training/optimizer.h"
#include "executor/training/trainingdata.h"
#include "executor/training/versionedweights.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace pipewright {

class TrainingWork final : public StageWork {
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

    /// Of a program with U blocks: the weight versions that blocks really read.
    const VersionedWeights& versions() const { return m_versions; }
    /// Of the last step: the mean token loss of each microbatch, with the weights that its forwards read.
    std::vector<double> microbatchLosses() const;
    /// Replaces the training data as the source of a microbatch: fills tokens and targets.
    using Feed =
        std::function<void(int step, int microbatch, std::span<std::int32_t> tokens, std::span<std::int32_t> targets)>;
    void setFeed(Feed feed) { m_feed = std::move(feed); }
    /// Gives the initial parameters in place of random ones; to be set before a run is prepared. Called for every
    /// stage's copies.
    using Start = std::function<void(const ParameterLayout& layout, std::span<float> parameters)>;
    void setStart(Start start) { m_start = std::move(start); }
    /// The listener gets the mean token loss of a microbatch, on the thread of the device with the head. On the host
    /// only.
    void setListener(std::function<void(int microbatch, double loss)> listener) { m_listener = std::move(listener); }

    /// From now on keeps the probabilities that each microbatch's forward predicts, on devices whose memory the host
    /// reads.
    void keepProbabilities() { m_probabilities.resize(m_losses.size()); }
    /// Of the last step, per microbatch; empty where they were not kept.
    const std::vector<std::vector<float>>& probabilities() const { return m_probabilities; }

    /// Keeps which experts tokens visit, on devices whose memory the host cannot touch: these add up in another order
    /// than the host. To be called before the program is prepared.
    void keepChoices();
    /// Choices of the last step; null where they are not kept.
    KeptChoices* choices() { return m_choices ? &*m_choices : nullptr; }
    const KeptChoices* choices() const { return m_choices ? &*m_choices : nullptr; }

    /// Between steps: copies the values of that kind from devices whose memory the host cannot touch to the host, where
    /// the functions below show them.
    void fetch(BufferKind kind);
    /// The host's memory for a persistent buffer that is elsewhere; the caller copies the values into it.
    Region mirrorOf(BufferId buffer);

    /// The kind of buffer that parameters() reads: in bf16 the optimizer's state, which holds the master copies.
    BufferKind kindOfParameters() const
    {
        return m_stages.front().maths.isBf16() ? BufferKind::OptimizerState : BufferKind::Parameters;
    }

    int stages() const { return static_cast<int>(m_stages.size()); }
    int replicas() const { return m_program->replicas(); } ///< of the prepared program
    /// In fp32, whatever type is stored.
    std::span<const float> parameters(int stage, int replica = 0) const
    {
        if (m_program->sharesOptimizer() && kindOfParameters() == BufferKind::OptimizerState)
            return ofShares(stage, BufferKind::OptimizerState);
        const std::span<const float> found =
            onHost(copyOf(stage, replica).parameters, stage, replica, kindOfParameters());
        return found.first(std::min(found.size(), at(stage).maths.parameters().count()));
    }
    /// Without master copies. For programs with versions of weights, which have no sharded optimizer.
    std::span<const float> optimizerState(int stage) const
    {
        const std::span<const float> found = onHost(copyOf(stage, 0).state, stage, 0, BufferKind::OptimizerState);
        return found.last(std::min(found.size(), at(stage).optimizer.stateElements())); // behind the master copies
    }
    /// Of the last step, after the reductions over shared parameters and replicas. With a sharded optimizer each
    /// replica has the full sums of its share alone; the shares are put together here.
    std::span<const float> gradients(int stage, int replica = 0) const
    {
        return m_program->sharesOptimizer()
                   ? ofShares(stage, BufferKind::Gradients)
                   : onHost(copyOf(stage, replica).gradients, stage, replica, BufferKind::Gradients);
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
        std::unique_ptr<Allocation> memory; ///< tokens and targets of all microbatches, then their losses
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
    void bindCopies(std::span<const Region> regions);
    /// Master copies of parameters lie before the optimizer's own state.
    std::size_t masters(const Stage& stage) const
    {
        return stage.maths.isBf16() ? stage.maths.parameters().count() : 0;
    }
    void initialise(std::size_t copy);
    /// The part of a stage's parameters that a replica updates.
    ReplicaShare shareOf(int stage, int replica) const;
    /// A stage's master copies or gradients, put together from the replicas' shares.
    std::span<const float> ofShares(int stage, BufferKind kind) const;
    void findLastWeightGrads();
    void updateShare(const TaskContext& context, StageCopy& copy) const;
    bool isLocal(int device) const { return !m_backend || m_backend->isLocal(device); }
    const Place& placeOf(int device) const { return m_places[device]; }
    Region textOn(const Place& place, std::size_t microbatch, bool targets) const;
    Region lossesOn(const Place& place) const;
    void keepProbabilities(const Task& task, const StageMemory& memory);
    std::span<const float> onHost(std::span<float> values, int stage, int replica, BufferKind kind) const;
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
    const StageCopy& copyOf(int stage, int replica) const
    {
        return m_copies[copyIndex(stage, holderOf(replica, m_program->deviceOfStage[stage]))];
    }
    StageCopy& copyOf(const Task& task) { return m_copies[copyIndex(task.stage, holderOf(task.replica, task.device))]; }

    std::vector<Stage> m_stages;
    const Program* m_program = nullptr;
    int m_batch;
    VersionedWeights m_versions;
    Feed m_feed;
    Start m_start;
    std::function<void(int, double)> m_listener;
    std::vector<Place> m_places;   ///< per device
    std::vector<Region> m_regions; ///< per buffer
    /// Per task: whether it is the last weight gradient of a stage. After it, in a stage that holds both embedding and
    /// head, the two gradients of the tied matrix are added; this comes before sums over replicas.
    std::vector<bool> m_sumsTied;
    std::vector<int> m_deviceOfCopy; ///< -1: there is none
    std::map<BufferId, std::vector<std::byte>> m_mirrors;
    mutable std::map<std::pair<int, BufferKind>, std::vector<float>> m_ofShares; ///< per stage, made when asked for
    std::vector<StageCopy> m_copies; ///< replica 0's stage 0, stage 1, …, replica 1's …
    int m_sequencePieces;
    std::uint64_t m_seed;
    const TrainingData& m_data;
    std::vector<std::vector<std::int32_t>> m_tokens, m_targets; ///< per microbatch
    std::vector<float> m_losses;                                ///< per microbatch, its share
    std::vector<std::vector<float>> m_probabilities;            ///< likewise, once they are kept
    std::vector<std::int64_t> m_chosen;                         ///< per stage, by choicesOf()
    std::optional<KeptChoices> m_choices;
    /// Per stage and microbatch: its SavedUntilWeightGrad, which I also reads on a GPU. It lives until W, which comes
    /// after I on the same device, so the order of that device is enough.
    std::vector<Region> m_savedForWeights;
    std::vector<Region> m_recomputedForWeights; ///< likewise, of stages that recompute
    std::vector<Region> m_reloadedForWeights;   ///< likewise, of stages that offload it to the host
};

} // namespace pipewright
