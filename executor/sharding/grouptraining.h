// SPDX-License-Identifier: GPL-3.0-or-later
// Training of a design whose stages are held by groups, as the runtime's work: every device of the Program is a member
// (core/program/memberprogram.h), does its parts of each block on its pieces of the tensors, and takes part in the
// collectives. A stage on a single device is a group of one. On devices whose memory the host can touch, of one process
// or of one each.
#pragma once

#include "core/design/groupstages.h"
#include "core/program/memberprogram.h"
#include "executor/runtime/collectives.h"
#include "executor/runtime/stagework.h"
#include "executor/sharding/groupmember.h"
#include "executor/sharding/wholetensors.h"
#include "executor/training/optimizer.h"
#include "executor/training/trainingdata.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace pipewright::sharding {

/// What keeps the model of a design with groups from being trained on this host: operations without maths, and what
/// tensor graphs leave out (attention sinks, latent attention …). Empty: nothing.
Diagnostics whyGroupsDoNotTrain(const ModelShape& shape);

/// The data of one step, per microbatch.
struct StepData {
    std::vector<HostTensor> tokens, targets;
};
StepData sampleStep(const TrainingData& data, const ModelShape& shape, int step, int microbatches);

/// One step of the whole model on one device, node by node, microbatch after microbatch.
struct ReferenceStep {
    WholeTensors gradients;
    double loss = 0; ///< mean over tokens and microbatches
};
ReferenceStep referenceStep(const Design& design, const WholeTensors& parameters, const StepData& data);

class GroupTraining final : public StageWork {
public:
    /// All must outlive this; `stages` with the bytes of measureMembers(). Throws Error with whyGroupsDoNotTrain().
    GroupTraining(const Design& design, const GroupStages& stages, const OptimizerSettings& optimizer,
                  const TrainingData& data, std::uint64_t seed);
    ~GroupTraining() override;

    /// What parameters are in place of random ones; to be set before a run is prepared.
    void setStart(TrainingWork::Start start) { m_start = std::move(start); }

    std::string name() const override { return "training"; }
    void useDevices(Backend& backend) override { m_backend = &backend; }
    void prepare(const Program& program, std::span<const Region> regions) override;
    void beginStep(int step) override;
    double endStep(int step) override;
    void compute(const TaskContext& context) override;
    void update(const TaskContext& context) override;
    void collective(const TaskContext& context) override;
    Region sharedPart(const Task&, const BufferView& gradients) override { return gradients.region; }
    /// What a member sets out of its sum of gradients, or adds to it.
    void reduce(const TaskContext& context, Region, Region, bool) override;

    /// Where the parameters that the optimizer moves are: in bf16 they are its master copies.
    BufferKind kindOfParameters() const;
    /// Where the parameters or gradients in this buffer are to be read, or, if another process has it, are to be put.
    Region mirrorOf(BufferId buffer);
    /// Between steps: what the members have, put together; of members in other processes what was put there.
    WholeTensors parameters() const { return whole(BufferKind::Parameters); }
    WholeTensors gradients() const { return whole(BufferKind::Gradients); }

private:
    struct Member;
    Member& memberAt(int stage, int replica, int device) const;
    std::unique_ptr<MemberCollectives> collectivesOf(int group);
    void bindBlocks(std::span<const Region> regions);
    static void bind(const Buffer& buffer, Region region, GroupMember::Block& block, bool read);
    WholeTensors whole(BufferKind kind) const;
    std::string nameOf(std::size_t copy, int tensor) const;

    const Design& m_design;
    const GroupStages& m_stages;
    OptimizerSettings m_optimizer;
    const TrainingData& m_data;
    std::uint64_t m_seed;
    TrainingWork::Start m_start;
    Backend* m_backend = nullptr;
    const Program* m_program = nullptr;
    std::vector<int> m_firstLayer; ///< per stage: by how much its plan's layer numbers are too low
    bool m_tiedHead;
    std::vector<std::unique_ptr<Theory>> m_theories;
    std::vector<std::unique_ptr<MemberDevice>> m_devices; ///< per device of the program; null: another process's
    std::unique_ptr<Exchange> m_exchange;                 ///< with the others of the own group, in their processes
    std::vector<std::unique_ptr<MemberCollectives>> m_collectives; ///< per group
    std::vector<std::vector<std::unique_ptr<Member>>> m_members;   ///< per copy of a stage, then member of its group
    std::vector<std::unique_ptr<GroupMember::Block>> m_blocks;
    std::vector<GroupMember::Block*> m_blockOfTask;       ///< null: no block
    std::span<const Region> m_regions;                    ///< per buffer
    std::map<BufferId, std::vector<std::byte>> m_mirrors; ///< of other processes' buffers
    StepData m_step;
};

} // namespace pipewright::sharding
