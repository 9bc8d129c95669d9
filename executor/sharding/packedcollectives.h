// SPDX-License-Identifier: GPL-3.0-or-later
// The collectives of a shared stage on communicators, which move contiguous buffers: pieces are packed before and
// unpacked after. When padded, every piece is as large as the largest. Piece by piece, each has its own size, and empty
// pieces are not moved; every member knows the lengths.
#pragma once

#include "executor/sharding/membercollectives.h"

namespace pipewright::sharding {

class PackedCollectives final : public MemberCollectives {
public:
    PackedCollectives(std::vector<MemberDevice*> members, std::vector<std::unique_ptr<Communicator>> communicators);

    bool repeats() const override { return true; }
    void inTurn(int device, const std::function<void()>& give) override { communicator(device).inTurn(give); }
    Tensor allGather(int device, const Tensor& piece, const Cut& cut) override;
    Tensor allReduce(int device, const Tensor& part) override;
    Tensor reduceScatter(int device, const Tensor& part, const Cut& cut) override;
    Tensor allToAll(int device, const Tensor& piece, const Cut& from, const Cut& to) override;

    void awaitCalls() override;

private:
    void abortCommunicators() override;
    Communicator& communicator(int device) { return *m_communicators[device]; }

    std::vector<std::unique_ptr<Communicator>> m_communicators; ///< null: another process's
};

} // namespace pipewright::sharding
