// SPDX-License-Identifier: GPL-3.0-or-later
// Pieces of sequences in the program of a group's members.
#include "core/program/compile.h"
#include "core/program/memberprogram.h"
#include "makers/groups.h"
#include "testmain.h"

#include <QTest>

#include <set>

using namespace pipewright;
using namespace pipewright::test;

class MemberPiecesTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void piecesReadWhatEarlierOnesKept()
    {
        const Design design = groupDesign("seq1f1b", {{1e9, 5e8}, {1e9}}, 2);
        const GroupStages stages = groupStages(design);
        const Program program = memberProgram(compile(design.schedule, design.costs, design.dataflow), stages,
                                              design.costs, design.schedule.transferOrder)
                                    .program;
        const int pieces = design.schedule.sequencePieces;
        QCOMPARE(pieces, 4);
        int gradients = 0;
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            const Task& task = program.tasks[t];
            if (task.kind != TaskKind::Compute || program.partOfTask[t] != 0)
                continue;
            std::set<int> earlier;
            bool readsGradient = false;
            for (const BufferId b : program.reads(t)) {
                const Buffer& buffer = program.buffers[b];
                if (buffer.kind == BufferKind::SequenceGradient)
                    readsGradient = true;
                else if (buffer.microbatch != task.microbatch())
                    earlier.insert(buffer.microbatch);
            }
            for (const BufferId b : program.writes(t))
                gradients += program.buffers[b].kind == BufferKind::SequenceGradient;
            const int piece = task.microbatch() % pieces;
            QCOMPARE(std::ssize(earlier), std::ptrdiff_t{piece});
            QVERIFY(earlier.empty() || *earlier.begin() == task.microbatch() - piece);
            QCOMPARE(readsGradient, task.op == Op::B && piece < pieces - 1);
        }
        QCOMPARE(gradients, 3 * 2); // of every member, once per sequence
    }
};

PIPEWRIGHT_TEST(MemberPiecesTest, NoApplication)
#include "tst_memberpieces.moc"
