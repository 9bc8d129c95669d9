// SPDX-License-Identifier: GPL-3.0-or-later
// The parsers of foreign files against damaged ones, everywhere and every time (tests/fuzz/ goes further where
// libFuzzer is at hand). A damaged file is either refused, with diagnostics that name the file, or gives a
// design that can run and that is the same when it is written and read again.
#include "core/exchange/exchange.h"
#include "core/exchange/megatronlayout.h"
#include "core/exchange/pytorchcsv.h"
#include "core/families/family.h"
#include "core/files/designfile.h"
#include "core/schedule/validate.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <random>

using namespace pipewright;
using namespace pipewright::test;

namespace {

constexpr int rounds = 2000; ///< per seed text

std::vector<std::string> seeds()
{
    std::vector<std::string> texts = {
        "0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n",
        "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0BW0,0REDUCE_GRAD\n1RECV_F0,1F0,1B0,1SEND_B0,1W0\n",
        "F0 f0 B0 W0 b0 w0\nF0,f0,B0,W0,b0,w0\n",
        "Et*3|(tt|)*29,m|L",
    };
    for (const char* family : {"1f1b", "zb-h1"}) {
        Design design = evenDesign({}, familySchedule(family, 3, 6));
        design.name = family;
        texts.push_back(pytorchCsv(design).text);
        texts.push_back(pytorchCommsCsv(design).text);
        texts.push_back(designToJson(design));
    }
    return texts;
}

class Damage {
public:
    explicit Damage(std::uint32_t seed) : m_random(seed) {}

    std::string operator()(std::string text)
    {
        static constexpr std::string_view tokens[] = {
            "0",      "9",           "65535",   "4294967296", "-1",   ",",   "\n",      "(",
            ")",      ";",           "F",       "B",          "I",    "W",   "BW",      "SEND_F",
            "RECV_B", "OVERLAP_F_B", "UNSHARD", "f",          "*",    "|",   "t",       "\"",
            "{",      "}",           "[",       "]",          "null", "1e9", "\\u0000", std::string_view("\0", 1),
            "\xff",   " ",           "\r"};
        for (std::size_t edits = 1 + below(3); edits-- > 0;) {
            const std::size_t at = below(text.size() + 1), length = std::min(below(12), text.size() - at);
            switch (below(8)) {
            case 0: text.erase(at, length); break;
            case 1: text.insert(at, tokens[below(std::size(tokens))]); break;
            case 2: text.insert(below(text.size() + 1), text.substr(at, length)); break;
            case 3: text.replace(at, length, tokens[below(std::size(tokens))]); break;
            case 4:
                if (at < text.size())
                    text[at] = static_cast<char>(below(256));
                break;
            default: swapCells(text, at); break; // damages the order, not the cells
            }
        }
        return text;
    }

private:
    /// The cells on both sides of the next comma change places.
    static void swapCells(std::string& text, std::size_t from)
    {
        const std::size_t comma = text.find(',', from);
        if (comma == std::string::npos || comma == 0)
            return;
        const std::size_t before = text.find_last_of(",\n", comma - 1) + 1; // npos + 1 is the beginning
        const std::size_t after = std::min(text.find_first_of(",\n", comma + 1), text.size());
        const std::string left = text.substr(before, comma - before), right = text.substr(comma + 1, after - comma - 1);
        text.replace(before, after - before, right + "," + left);
    }

    std::size_t below(std::size_t bound) { return bound == 0 ? 0 : m_random() % bound; }
    std::mt19937 m_random;
};

/// Calls `read` and checks what it threw, if it threw; true when it returned.
template<class Read>
bool survives(Read read, const char* place)
{
    try {
        read();
        return true;
    } catch (const Error& error) {
        if (error.diagnostics().empty() || !hasErrors(error.diagnostics()))
            throw std::logic_error("an error without an error");
        for (const Diagnostic& d : error.diagnostics())
            if (!d.where.starts_with(place) || d.what.empty())
                throw std::logic_error("a diagnostic without a place: " + toString(d));
    }
    return false;
}

bool hangsOnOneStream(const Imported& imported)
{
    return std::any_of(imported.diagnostics.begin(), imported.diagnostics.end(), [](const Diagnostic& d) {
        return d.severity == Severity::Warning && d.what.find("on one stream of each rank: ") != std::string::npos;
    });
}

} // namespace

class TstImportMutations : public QObject {
    Q_OBJECT

private slots:
    void damagedScheduleFilesAreRefusedOrValid()
    {
        int read = 0, refused = 0, hanging = 0;
        std::uint32_t seed = 1;
        for (const std::string& text : seeds()) {
            Damage damage(seed++);
            for (int round = 0; round < rounds; ++round) {
                const std::string damaged = damage(text);
                for (const PytorchLetters letters : {PytorchLetters::Current, PytorchLetters::Legacy}) {
                    Imported imported;
                    ImportOptions options;
                    options.letters = letters;
                    const bool good = survives([&] { imported = importDesign(damaged, "file", options); }, "file");
                    ++(good ? read : refused);
                    if (!good)
                        continue;
                    QVERIFY(!hasErrors(validate(imported.design.schedule)));
                    QVERIFY(!hasErrors(imported.diagnostics));
                    const ExportedText order = pytorchCsv(imported.design);
                    Schedule computations = imported.design.schedule;
                    computations.transferOrder.clear();
                    QVERIFY(importDesign(order.text, "again").design.schedule == computations);
                    const auto is = [](Severity severity) {
                        return [severity](const Diagnostic& d) { return d.severity == severity; };
                    };
                    if (std::any_of(order.diagnostics.begin(), order.diagnostics.end(), is(Severity::Warning)))
                        continue; // PyTorch would mix up the losses
                    ExportedText comms;
                    if (!survives([&] { comms = pytorchCommsCsv(imported.design); }, "")) {
                        ++hanging;
                        QVERIFY(hangsOnOneStream(imported));
                        continue;
                    }
                    Imported again = importDesign(comms.text, "again");
                    QVERIFY(!hangsOnOneStream(again));
                    if (imported.design.schedule.transferOrder.empty()) // it had none of its own
                        again.design.schedule.transferOrder.clear();
                    QVERIFY(again.design.schedule == imported.design.schedule);
                }
            }
        }
        qInfo("%d read, of which %d hang on one stream, %d refused", read, hanging, refused);
        QVERIFY(read > 500 && refused > 500); // both ways were walked
    }

    void damagedLayoutsAreRefusedOrReadBack()
    {
        Damage damage(99);
        int read = 0;
        for (int round = 0; round < 5 * rounds; ++round) {
            const std::string damaged = damage("Et*3|(tt|)*29,m|L");
            std::vector<std::string> stages;
            if (!survives([&] { stages = parseMegatronLayout(damaged, "layout"); }, "layout"))
                continue;
            ++read;
            QVERIFY(parseMegatronLayout(megatronLayoutText(stages), "layout") == stages);
        }
        QVERIFY(read > 100);
    }

    void damagedDesignsAreRefusedOrReadBack()
    {
        Damage damage(5);
        const Design design = unitDesign(familySchedule("zb-h1", 2, 3));
        const std::string text = designToJson(design);
        int read = 0;
        for (int round = 0; round < rounds; ++round) {
            const std::string damaged = damage(text);
            Design back;
            if (!survives([&] { back = designFromJson(damaged, "file"); }, "file"))
                continue;
            ++read;
            QVERIFY(designFromJson(designToJson(back), "again") == back);
        }
        QVERIFY(read > 50);
    }
};

PIPEWRIGHT_TEST(TstImportMutations, NoApplication)
#include "tst_importmutations.moc"
