// SPDX-License-Identifier: GPL-3.0-or-later
// A run of a design whose stages are held by groups. It has two Programs: the devices execute the member Program; the
// trace, and so every overlay and comparison, refers to the groups' Program.
#pragma once

#include "core/design/design.h"
#include "core/program/memberprogram.h"
#include "executor/run/backendcheck.h"
#include "executor/run/gradientcheck.h"
#include "executor/sharding/drydevice.h"
#include "executor/sharding/grouptraining.h"

#include <map>
#include <optional>
#include <vector>

namespace pipewright {

/// Whether each member of the design's groups runs as a device of its own. Otherwise a group runs as one device, as
/// with timed blocks on GPUs of processes.
bool runsMembers(const Design& design, const RunMeans& means);

/// Number of devices, or processes, that a run of the design needs.
int devicesOfRun(const Design& design, const RunMeans& means);
/// The GPUs that the design gives to these devices; for members, the group's own cluster gives them. Throws Error if
/// only some devices are given a GPU.
std::vector<GpuShare> gpusOfRun(const Design& design, const RunMeans& means);

/// The part of such a run that does not depend on the order of its blocks.
struct MeasuredGroups {
    Design design; ///< with the bytes of every group's fullest member
    GroupStages stages;

    /// `trains`: the members' bytes are those of training at these places; else they come from the design's costs.
    /// Throws Error with whyNoMembers().
    MeasuredGroups(const Design& design, bool trains, const sharding::MemberPlaces& places = {});
};

struct GroupRun : MeasuredGroups {
    Program groups; ///< as compiled from the design: its devices are the groups
    MemberProgram members;
    std::vector<int> shownMember; ///< per group: the member with the highest peak, whose memory the trace has

    /// Throws Error as MeasuredGroups does, and, naming the cycle of waits, if the members would deadlock.
    GroupRun(const Design& design, bool trains, const sharding::MemberPlaces& places = {});
    std::string nameOf(int group, Backend& backend) const; ///< "2 members: host threads 0 to 1"
    std::vector<Bytes> shownOf(const std::vector<Bytes>& ofMembers) const;
};

/// Unset where no members run. `gpus`: the backend, if its devices are GPUs of this process.
std::optional<GroupRun> groupRunOf(const Design& design, const RunOptions& options, bool trains, Backend* gpus);

/// Throws Error where blocks of the run's members cannot be captured as graphs.
void requireCapture(const GroupRun& run, Backend& backend);

/// Predictions assume that members are threads. Adds a note, for the first device that differs, if members that are
/// processes or GPUs need another amount of memory. `copies`: they are processes without GPUs.
void noteOtherRoom(const GroupRun& run, const Design& given, bool copies, Diagnostics& notes);

/// Combines the members' records into records of the groups: a block lasts from the start of its first part to the end
/// of its last, over all members. Parts and collectives go into the trace as details of their block.
class GroupSink final : public RecordSink {
public:
    GroupSink(RecordSink& to, const GroupRun& run);

    void append(const std::vector<TaskRecord>& records) override;
    void append(const std::vector<MemoryRecord>& records) override;
    void append(const StepRecord& record) override { m_to.append(record); }
    void append(const std::vector<GpuRecord>& records) override;
    void commit() override { m_to.commit(); }
    void check() override { m_to.check(); }

private:
    struct Block {
        int missing = 0;
        Nanoseconds start = 0, end = 0;
    };
    std::string nameOf(TaskId task) const;
    bool isPartOf(TaskId task, TaskId block) const;

    RecordSink& m_to;
    const GroupRun& m_run;
    std::vector<int> m_partsOfBlock; ///< per task of the groups: member records that it consists of
    std::map<std::pair<std::int32_t, TaskId>, Block> m_blocks;
};

/// In groups: compares as checkGroupGradients() does, with a reference that follows the members' choices of experts.
std::unique_ptr<LastStepCheck> checkOf(const sharding::GroupTraining& work, const LastStep& last);

/// Compares the last step's gradients with those of one device that has the whole model. Differences as small as the
/// rounding of gradients of the usual size do not count: a key's bias has no other gradient.
GradientCheck checkGroupGradients(const sharding::WholeTensors& gradients, const sharding::ReferenceStep& reference,
                                  double bound, DataType stored);

} // namespace pipewright
