// SPDX-License-Identifier: GPL-3.0-or-later
// JSON that is built and printed, and JSON of others that is read.
#include "core/json/jsonvalue.h"
#include "testmain.h"

#include <QTest>

#include <cmath>
#include <cstdint>
#include <stdexcept>

using namespace pipewright;

class TestJsonValue : public QObject {
    Q_OBJECT

private slots:
    void jsonIsPrintedAsItWasBuilt()
    {
        JsonValue value{{"text", "a\"b"},        {"whole", 3},   {"real", 3.0},
                        {"largest", UINT64_MAX}, {"off", false}, {"none", nullptr}};
        value["list"] = std::vector<std::vector<int>>{{1, 2}, {}};
        value["pairs"] = {{"a", 1}, {2, "b"}};
        value["nested"]["tiny"] = 1e-7;
        value["nested"]["nowhere"] = std::nan("");
        value["added"].push_back("x");
        value["whole"] = 4;
        value.update({{"off", true}, {"last", {{"key", "value"}}}});
        value.erase("text");
        QCOMPARE(value.dump(),
                 std::string(R"({"whole":4,"real":3.0,"largest":18446744073709551615,"off":true,"none":null,)"
                             R"("list":[[1,2],[]],"pairs":[["a",1],[2,"b"]],)"
                             R"("nested":{"tiny":1e-07,"nowhere":null},"added":["x"],)"
                             R"("last":{"key":"value"}})"));
        QCOMPARE(JsonValue::array().dump(), std::string("[]"));
        QCOMPARE(JsonValue::object().dump(), std::string("{}"));
        QVERIFY_THROWS_EXCEPTION(std::logic_error, JsonValue(1).push_back(2));
        QVERIFY_THROWS_EXCEPTION(std::logic_error, JsonValue(1)["a"]);
        QVERIFY_THROWS_EXCEPTION(std::exception, JsonValue("\xff").dump());
        QCOMPARE(JsonValue("\xff").dump(JsonValue::InvalidText::Replace), std::string("\"\xef\xbf\xbd\""));
    }

    void membersAreReadByTheirTypes()
    {
        const auto value =
            JsonValue::fromText(R"({"z": 1, "text": "a\u00e9", "half": 0.5, "least": -9223372036854775808,
                                                   "large": 18446744073709551615, "on": true, "none": null,
                                                   "list": [1, "two", [3]], "inner": {"b": 2, "a": 1}})");
        QVERIFY(value.isObject());
        QCOMPARE(value.member("text").text(), std::optional<std::string>("a\u00e9"));
        QCOMPARE(value.member("half").number(), std::optional(0.5));
        QCOMPARE(value.member("half").integer(), std::nullopt);
        QCOMPARE(value.member("z").number(), std::optional(1.0));
        QCOMPARE(value.member("least").integer(), std::optional(INT64_MIN));
        QCOMPARE(value.member("large").integer(), std::nullopt);
        QCOMPARE(value.member("large").unsignedInteger(), std::optional(UINT64_MAX));
        QCOMPARE(value.member("least").unsignedInteger(), std::nullopt);
        QCOMPARE(value.member("z").unsignedInteger(), std::optional<std::uint64_t>(1));
        QCOMPARE(value.member("large").number(), std::optional(18446744073709551616.0));
        QCOMPARE(value.member("on").boolean(), std::optional(true));
        QCOMPARE(value.member("on").number(), std::nullopt);
        QCOMPARE(value.member("list").elements().size(), std::size_t(3));
        QCOMPARE(value.member("list").elements()[2].elements()[0].integer(), std::optional<std::int64_t>(3));
        QCOMPARE(value.members().front().first, std::string("z")); // in the text's order
        QCOMPARE(value.member("inner").members().front().first, std::string("b"));
        QVERIFY(value.contains("none"));
    }

    void whatIsNotThereReadsAsNull()
    {
        const JsonValue value{{"text", "a"}};
        QVERIFY(!value.contains("other"));
        QVERIFY(!value.member("other").member("inner").text());
        QVERIFY(!value.member("text").member("inner").number());
        QVERIFY(value.member("text").elements().empty() && value.member("text").members().empty());
        QVERIFY(!JsonValue(std::vector<int>{1}).contains("text"));
    }

    void textThatIsNoJsonReadsAsNull()
    {
        const auto isNull = [](const std::string& text) {
            return std::holds_alternative<std::nullptr_t>(JsonValue::fromText(text).value());
        };
        for (const char* text : {"", "{", "{} x", "nul", "{\"a\": 1,}", "Traceback (most recent call last):"})
            QVERIFY2(isNull(text), text);
        QVERIFY(!isNull(std::string(64, '[') + std::string(64, ']')));
        QVERIFY(isNull(std::string(65, '[') + std::string(65, ']')));
        QVERIFY(isNull(std::string(1 << 20, '['))); // and no stack is used up
        QVERIFY(isNull(std::string(1 << 20, '[') + std::string(1 << 20, ']')));
    }
};

PIPEWRIGHT_TEST(TestJsonValue, NoApplication)
#include "tst_jsonvalue.moc"
