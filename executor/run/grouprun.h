// SPDX-License-Identifier: GPL-3.0-or-later
// A run of a design whose stages are held by groups: the member Program that the devices execute, and the groups'
// Program that the trace, and so every overlay and comparison, is about.
#pragma once

#include "core/design/design.h"
#include "core/program/memberprogram.h"
#include "executor/run/backendcheck.h"
#include "executor/run/run.h"
#include "executor/sharding/drydevice.h"
#include "executor/sharding/grouptraining.h"

#include <map>
#include <optional>
#include <vector>

namespace pipewright {

/// Whether the members of the design's groups run, each on its own, and not every group as one device: with timed
/// blocks on GPUs of processes they do not.
bool runsMembers(const Design& design, const RunMeans& means);

/// Devices, or processes, that a run of the design takes.
int devicesOfRun(const Design& design, const RunMeans& means);
/// Where these are on GPUs, if the design says so; a group's own cluster says it of its members. Throws Error where it
/// is said of some only.
std::vector<GpuShare> gpusOfRun(const Design& design, const RunMeans& means);

/// What of such a run does not depend on the order of its blocks.
struct MeasuredGroups {
    Design design; ///< with the bytes of every group's fullest member
    GroupStages stages;

    /// `trains`: the members' bytes are those of training at these places, otherwise those of the design's costs.
    /// Throws Error with whyNoMembers().
    MeasuredGroups(const Design& design, bool trains, const sharding::MemberPlaces& places = {});
};

struct GroupRun : MeasuredGroups {
    Program groups; ///< as compiled from the design: whose devices are the groups
    MemberProgram members;
    std::vector<int> shownMember; ///< per group: the member with the highest peak, whose memory the trace has

    /// Throws Error as MeasuredGroups does, and with the circle of waits where members would hang.
    GroupRun(const Design& design, bool trains, const sharding::MemberPlaces& places = {});
    std::string nameOf(int group, Backend& backend) const; ///< "2 members: host threads 0 to 1"
    std::vector<Bytes> shownOf(const std::vector<Bytes>& ofMembers) const;
};

/// Unset where no members run. `gpus`: of a backend whose devices are GPUs of this process.
std::optional<GroupRun> groupRunOf(const Design& design, const RunOptions& options, bool trains, Backend* gpus);

/// Throws Error where blocks of the run's members cannot be captured as graphs.
void requireCapture(const GroupRun& run, Backend& backend);

/// Adds a note where members that are processes or GPUs need other room than threads, of which predictions are: the
/// first device's. `copies`: they are processes without GPUs.
void noteOtherRoom(const GroupRun& run, const Design& given, bool copies, Diagnostics& notes);

/// Puts the members' records together to the groups': a block lasts from its first part to its last, on whatever
/// member; parts and collectives go into the trace as what lies under the block.
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
    std::vector<int> m_partsOfBlock; ///< per task of the groups: records that make it
    std::map<std::pair<std::int32_t, TaskId>, Block> m_blocks;
};

/// The last step's gradients against one device that has the whole model. Differences that rounding alone makes of
/// gradients of the usual size are none: a key's bias has no gradient but these.
GradientCheck checkGroupGradients(const sharding::WholeTensors& gradients, const sharding::ReferenceStep& reference,
                                  double bound, DataType stored);

} // namespace pipewright
