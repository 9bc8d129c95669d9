// SPDX-License-Identifier: GPL-3.0-or-later
// What all work that trains has in common, on single devices (TrainingWork) and in groups (GroupTraining): copies of
// stages' parameters with their gradients and optimizer state in the Program's persistent buffers, their first values,
// and their update, by shares where replicas shard the optimizer; what a caller reads of them between steps; and which
// experts tokens visit. A caller of a run needs to know no more of the work that it runs.
#pragma once

#include "core/schedule/replicas.h"
#include "executor/runtime/stagework.h"
#include "executor/training/keptchoices.h"
#include "executor/training/optimizer.h"
#include "executor/training/versionedweights.h"

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

namespace pipewright {

/// Parameters, or gradients, of every stage in its ParameterLayout.
using StageValues = std::vector<std::vector<float>>;

class TrainedWork : public StageWork {
public:
    /// Gives the initial parameters in place of random ones. Called for every stage's copies.
    using Start = std::function<void(const ParameterLayout& layout, std::span<float> parameters)>;

    /// The memory of the kept choices.
    Bytes bytesBeside(const Program& program, int device, const Capabilities& capabilities) const override;

    /// To be called before a run is prepared: devices that add up in another order than the reference keep which
    /// experts tokens visit.
    virtual void keepChoices() = 0;
    /// Choices of the last step; null where they are not kept.
    KeptChoices* choices() { return m_choices ? &*m_choices : nullptr; }
    const KeptChoices* choices() const { return m_choices ? &*m_choices : nullptr; }

    /// The kind of buffer with the parameters that the optimizer updates: in bf16 its state, which holds the master
    /// copies.
    BufferKind kindOfParameters() const { return isBf16() ? BufferKind::OptimizerState : BufferKind::Parameters; }
    /// What a reference needs on the host before a step that it repeats, and what it is compared with after the step:
    /// gradients or, where weights are updated within the step, parameters.
    std::vector<BufferKind> kindsOfStart() const;
    BufferKind kindOfResult() const;
    /// The kind of buffer that has gradients after a step.
    BufferKind kindOfGradients() const
    {
        return m_program->sharesGradientsOfReplicas() ? BufferKind::KeptGradients : BufferKind::Gradients;
    }

    /// Between steps: copies the buffers of that kind from devices of this process whose memory the host cannot touch
    /// into their mirrors.
    void fetch(BufferKind kind);
    /// The host's memory for a persistent buffer: read it there or, if the buffer is in another process, write it
    /// there.
    Region mirrorOf(BufferId buffer);
    /// Between steps: `kind` is Parameters or Gradients. The buffers of kindOfParameters() or kindOfGradients() must
    /// have been fetched, and those of other processes written. Throws Error otherwise.
    virtual StageValues values(BufferKind kind) const = 0;

    /// The weight versions that blocks really read; null: the program has no U blocks.
    virtual const VersionedWeights* versions() const { return nullptr; }
    /// Of the last step, per microbatch, the probabilities that its forward predicted; empty where they were not kept.
    virtual std::span<const std::vector<float>> probabilities() const { return {}; }

protected:
    /// What works on the memory of one of this process's devices between steps.
    struct Access {
        Device* device = nullptr; ///< null, as the stream: the host's memory, without a backend
        Stream* stream = nullptr;
        const kernels::Operations* operations = &kernels::hostOperations();
    };
    virtual Access access(int device) = 0;
    virtual bool isBf16() const = 0;

    bool isLocal(int device) const { return !m_backend || m_backend->isLocal(device); }
    bool isOnHost(int device) const; ///< the host can touch its memory

    /// For prepare(), before anything else. Also prepares the memory of choices.
    void useProgram(const Program& program, std::span<const Region> regions);
    /// If the buffer holds parameters, gradients or optimizer state of `count` parameters: gives its place to the copy.
    void bindCopy(BufferId buffer, std::size_t count, StageCopy& copy);
    /// Writes these parameters into a copy; gradients and state become zeros.
    void initialise(const StageCopy& copy, int device, int replica, std::span<const float> parameters);
    /// If they are there from step to step. Returns before it is done, as the device's stream is not waited for.
    void clearGradients(const StageCopy& copy, int device);

    /// Which of `count` parameters a replica updates: all, or with a sharded optimizer its share.
    ReplicaShare shareOf(std::size_t count, int replica) const;
    /// Updates this replica's share of `count` parameters, with the share's optimizer, and hands it on; or puts in
    /// place what other replicas updated.
    void updateShare(const TaskContext& context, const StageCopy& copy, std::size_t count,
                     const StageOptimizer& optimizer) const;

    /// A persistent buffer's values on the host; empty: there is no such buffer. Throws Error if they are elsewhere and
    /// were not fetched.
    std::span<const float> onHost(BufferKind kind, int stage, int replica, int device) const;
    /// The `count` parameters or gradients of a replica. Where each replica has a share of them alone, the shares are
    /// put together. `deviceOf` a replica: where its copy is.
    std::vector<float> valuesOf(BufferKind kind, int stage, std::size_t count,
                                const std::function<int(int replica)>& deviceOf, int replica = 0) const;

    const Program* m_program = nullptr;
    std::span<const Region> m_regions; ///< per buffer
    std::optional<KeptChoices> m_choices;

private:
    std::map<BufferId, std::vector<std::byte>> m_mirrors;                ///< of buffers that the host cannot touch
    std::map<std::tuple<BufferKind, int, int, int>, BufferId> m_buffers; ///< by kind, stage, replica and device
};

} // namespace pipewright
