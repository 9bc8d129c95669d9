// SPDX-License-Identifier: GPL-3.0-or-later
// Design files of older versions keep their meaning.
#include "core/base/diagnostic.h"
#include "core/design/redesign.h"
#include "core/files/designfile.h"
#include "core/files/designtexts.h"
#include "core/schedule/replicas.h"
#include "makers/models.h"
#include "testmain.h"

#include <QTest>

#include <string>

using namespace pipewright;

namespace {

Design recomputing(Recompute first, Recompute second)
{
    return withRecompute(test::tinyGpt("1f1b", 2, 4), {first, second});
}

} // namespace

class FileVersionsTest : public QObject {
    Q_OBJECT

private slots:
    void everyKindOfRecomputationReadsBackEqual()
    {
        std::vector<Recompute> kinds(std::begin(recomputeKinds), std::end(recomputeKinds));
        kinds.push_back(Recompute::every(3));
        for (const Recompute kind : kinds) {
            const Design design = recomputing(kind, Recompute::Full);
            QVERIFY2(designFromJson(designToJson(design), "d.json") == design, nameOf(kind).c_str());
        }
    }

    /// There "full" and "selective" were R blocks, in the order of the file.
    void inTheFirstVersionBlocksRecompute()
    {
        const Design design = recomputing(Recompute::BlockSelective, Recompute::Block);
        std::string text = replaced(designToJson(design), "\"pipewright\": 2", "\"pipewright\": 1");
        text = replaced(replaced(text, "\"block-selective\"", "\"selective\""), "\"block\"", "\"full\"");
        QVERIFY(designFromJson(text, "d.json") == design);
        // In the second they are inside the backward, and R blocks have no place.
        text = replaced(text, "\"pipewright\": 1", "\"pipewright\": 2");
        QCOMPARE(designFromJson(text, "d.json").schedule.recompute,
                 (std::vector<Recompute>{Recompute::Selective, Recompute::Full}));
    }

    void inTheFirstVersionReplicasSharedTheOptimizersState()
    {
        Design design = test::tinyGpt("1f1b", 2, 4);
        design.schedule = withReplicas(design.schedule, 2);
        design.schedule.zero = {1, Zero::Over::Data};
        const std::string text = designToJson(design);
        QCOMPARE(designFromJson(text, "d.json").schedule.zero, design.schedule.zero);
        const std::size_t begin = text.find("\"zero\""), end = text.find('}', begin) + 1;
        std::string before = text;
        before.replace(begin, end - begin, "\"sharded_optimizer\": true");
        QCOMPARE(designFromJson(before, "d.json").schedule, design.schedule);
        design.schedule.zero.over = Zero::Over::DataAndContext;
        QCOMPARE(designFromJson(designToJson(design), "d.json").schedule.zero, design.schedule.zero);
    }

    void whatIsNoWayToRecomputeIsNamed()
    {
        const std::string text = designToJson(recomputing(Recompute::Full, Recompute::every(3)));
        for (const char* wrong : {"\"every:0\"", "\"every:\"", "\"every:3x\"", "\"full:0\"", "\"all\"", "3"})
            try {
                (void)designFromJson(replaced(text, "\"every:3\"", wrong), "d.json");
                QFAIL(wrong);
            } catch (const Error& error) {
                QVERIFY2(toString(error.diagnostics()).find("no way to recompute") != std::string::npos, error.what());
            }
    }
};

PIPEWRIGHT_TEST(FileVersionsTest, NoApplication)
#include "tst_fileversions.moc"
