// SPDX-License-Identifier: GPL-3.0-or-later
// The rows of the tables of task and buffer kinds agree with each other.
#include "core/program/program.h"
#include "testmain.h"

#include "core/base/diagnostic.h"

#include <QTest>

#include <map>
#include <set>

using namespace pipewright;

namespace {

std::set<BufferKind> allBufferKinds()
{
    std::set<BufferKind> kinds;
    for (int kind = 0; kind < bufferKindCount; ++kind)
        kinds.insert(static_cast<BufferKind>(kind));
    return kinds;
}

} // namespace

class KindsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyTaskIsABlockAnUpdateASumOrAMove()
    {
        for (const TaskKind kind : allTaskKinds) {
            QCOMPARE(int{isOfBlock(kind)} + int{isUpdate(kind)} + int{isReduction(kind)} + int{moves(kind)}, 1);
            QCOMPARE(isBesideBlocks(kind), !isOfBlock(kind) && !isUpdate(kind));
            QCOMPARE(isBlockOrUpdate(kind), !isBesideBlocks(kind) && kind != TaskKind::Collective);
            QCOMPARE(joinsDevices(kind), isBesideBlocks(kind) && !isHostCopy(kind) && !isCopyCollective(kind));
            QVERIFY(!traitsOf(kind).computes || isBlockOrUpdate(kind));
        }
        QVERIFY(traitsOf(TaskKind::Compute).computes && traitsOf(TaskKind::Update).computes);
    }

    /// A trace tells tasks apart by the key and their numbers, so a key stands for one way of being issued.
    void aKeyOfTracesIsOneInstructionOfItsDevice()
    {
        std::map<std::string_view, InstructionKind> issuedAs;
        std::set<InstructionKind> met;
        for (const TaskKind kind : allTaskKinds) {
            const TaskTraits& traits = traitsOf(kind);
            QVERIFY(traits.issuedAs != InstructionKind::Free && traits.issuedAs != InstructionKind::Receive);
            QVERIFY(issuedAs.try_emplace(traits.key, traits.issuedAs).first->second == traits.issuedAs);
            met.insert(traits.issuedAs);
        }
        QCOMPARE(issuedAs.size(), met.size());
    }

    void whatIsReceivedHoldsWhatWasSent()
    {
        for (const BufferKind kind : allBufferKinds()) {
            const BufferTraits& sent = traitsOf(kind);
            if (!sent.receivedAs) {
                QVERIFY_THROWS_EXCEPTION(Error, receivedKind(kind));
                continue;
            }
            QVERIFY(receivedKind(kind) == *sent.receivedAs);
            const BufferTraits& received = traitsOf(*sent.receivedAs);
            QCOMPARE(received.isWeights, sent.isWeights);
            switch (sent.use) {
            case BufferUse::Saved: QVERIFY(received.use == BufferUse::OnHost); break;
            case BufferUse::OnHost: QVERIFY(received.use == BufferUse::Saved); break;
            case BufferUse::Made:
            case BufferUse::Received: QVERIFY(received.use == BufferUse::Received); break;
            case BufferUse::State:
            case BufferUse::Weights:
            case BufferUse::Gathered:
            case BufferUse::Workspace: QFAIL("it never leaves its device");
            }
        }
    }

    void everyReceivedBufferWasSentByAnother()
    {
        std::set<BufferKind> received;
        for (const BufferKind kind : allBufferKinds())
            if (const auto other = traitsOf(kind).receivedAs)
                received.insert(*other);
        for (const BufferKind kind : allBufferKinds())
            if (traitsOf(kind).use == BufferUse::Received || isInHostMemory(kind))
                QVERIFY(received.contains(kind) || kind == BufferKind::ReduceInbox); // both sides of a sum send theirs
    }

    void statesAreTheFirstKinds()
    {
        for (const BufferKind kind : allBufferKinds())
            QCOMPARE(isPersistent(kind), kind <= BufferKind::Framework);
    }
};

PIPEWRIGHT_TEST(KindsTest, NoApplication)
#include "tst_kinds.moc"
