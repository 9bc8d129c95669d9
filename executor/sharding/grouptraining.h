// SPDX-License-Identifier: GPL-3.0-or-later
// Training of a design whose stages are held by groups, as the runtime's work: every device of the Program is a member
// (core/program/memberprogram.h), does its parts of each block on its pieces of the tensors, and takes part in the
// collectives. A stage on a single device is a group of one. Devices are the host's or GPUs, of one process or of one
// each.
#pragma once

#include "core/design/groupstages.h"
#include "core/program/memberprogram.h"
#include "executor/runtime/collectives.h"
#include "executor/sharding/groupmodel.h"
#include "executor/sharding/memberdata.h"
#include "executor/training/trainedwork.h"

#include <memory>
#include <string>
#include <vector>

namespace pipewright::sharding {

class GroupTraining final : public TrainedWork {
public:
    /// `stages`, with the bytes of measureMembers(), must outlive this. `recompute`: as the schedule says.
    GroupTraining(std::unique_ptr<GroupModel> model, const GroupStages& stages, const OptimizerSettings& optimizer,
                  std::vector<Recompute> recompute = {});
    ~GroupTraining() override;

    void keepChoices() override; ///< all members, since each adds up in another order
    /// The choices for a reference to follow, after they were fetched; -1 for a token that all members of a group
    /// route, but not to the same experts.
    FollowedGroups followed(double tolerance) const;

    /// Passes the values and gradients that a device's member makes from now on to `observer`, which must outlive this.
    /// To be called once a run is prepared.
    void watch(int device, MemberObserver& observer);

    Bytes bytesBeside(const Program& program, int device, const Capabilities& capabilities) const override;
    void prepare(const Program& program, std::span<const Region> regions) override;
    void beginStep(int step) override;
    double endStep(int step) override;
    void compute(const TaskContext& context) override;
    void update(const TaskContext& context) override;
    void collective(const TaskContext& context) override;
    bool repeats(const Task& task) const override;
    void inTurn(const TaskContext& context, const std::function<void()>& give) override;
    bool collectivesOnStreams() const override { return true; }
    void abort() override;
    void awaitCalls() override;
    Region sharedPart(const Task&, const BufferView& gradients) override { return gradients.region; }
    /// Packs a member's part of a gradient sum for sending, or adds a received part to the member's gradients.
    void reduce(const TaskContext& context, Region, Region, bool) override;

    const VersionedWeights* versions() const override { return m_program->versioned() ? &m_versions : nullptr; }
    StageValues values(BufferKind kind) const override { return m_model->byStage(whole(kind)); }
    /// As values(), of whole tensors.
    WholeTensors parameters() const { return whole(BufferKind::Parameters); }
    WholeTensors gradients() const { return whole(BufferKind::Gradients); }
    /// As values(), of the optimizer's state. Its buffers must have been fetched.
    StageValues optimizerState() const;

private:
    struct Member;
    Member& memberAt(int stage, int replica, int device) const;
    std::unique_ptr<MemberCollectives> collectivesOf(int group);
    void bindBlocks(std::span<const Region> regions);
    static void bind(const Buffer& buffer, Region region, GroupMember::Block& block, bool read);
    void initialise(Member& member, std::size_t copy, const WholeTensors& values);
    Access access(int device) override;
    bool isBf16() const override;
    WholeTensors whole(BufferKind kind) const;
    /// Puts the pieces of the first replica's members together. `valuesOn`: a member's, as its parameters lie.
    using ValuesOn = std::function<std::vector<float>(std::size_t copy, std::size_t member)>;
    WholeTensors whole(const ValuesOn& valuesOn) const;
    std::string nameOf(std::size_t copy, const Property& parameter) const;
    bool recomputesAll(int stage) const;
    void prepareVersions();
    /// A node that chooses experts on a member, and how many expert numbers it chooses there.
    struct Routing {
        Property made;
        std::size_t perToken, count;
    };
    /// In the order of the forward.
    std::vector<Routing> routingsOf(std::size_t copy, int member) const;
    bool isLastPart(TaskId task) const; ///< of its block on its device

    const std::unique_ptr<GroupModel> m_model;
    const GroupStages& m_stages;
    OptimizerSettings m_optimizer;
    std::vector<Recompute> m_recompute;
    std::vector<std::unique_ptr<Theory>> m_theories;
    std::vector<std::unique_ptr<MemberDevice>> m_devices; ///< per device of the program; null: another process's
    std::unique_ptr<Exchange> m_exchange;                 ///< to the other members of this group, in other processes
    std::vector<std::unique_ptr<MemberCollectives>> m_collectives; ///< per group
    std::vector<std::vector<std::unique_ptr<Member>>> m_members;   ///< per copy of a stage, then member of its group
    std::vector<std::unique_ptr<GroupMember::Block>> m_blocks;
    std::vector<GroupMember::Block*> m_blockOfTask; ///< null: no block
    VersionedWeights m_versions;
};

} // namespace pipewright::sharding
