// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cancel.h"
#include "app/command.h"
#include "app/table.h"
#include "app/terminal.h"

#include "core/base/formattedtext.h"
#include "core/base/units.h"
#include "traces/store/query.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

namespace pipewright::app {

namespace {

struct QueryOptions {
    explicit QueryOptions(CLI::App& command)
    {
        command.add_option("trace", trace, "a trace, or any SQLite export")->required()->type_name("TRACE");
        command.add_option("sql", sql, "one SELECT statement")->type_name("SQL");
        command.add_flag("--schema", schema, "show the tables, their columns and how many rows they have");
        command.add_option("--limit", limit, "rows at most (1000)")->type_name("N")->check(CLI::Range(1, 100'000'000));
        command.add_option("--time-limit", timeLimit, "stop the statement after so long (1min)")->type_name("T");
        command.add_option("--memory-limit", memoryLimit, "memory at most (1GiB)")->type_name("SIZE");
        command.add_flag("--json", json, "print one JSON object");
    }
    std::string trace, sql, timeLimit = "1min", memoryLimit = "1GiB";
    int limit = 1000;
    bool schema = false, json = false;
};

std::string textOf(const QueryValue& value)
{
    struct Visitor {
        std::string operator()(std::monostate) const { return {}; }
        std::string operator()(std::int64_t number) const { return std::to_string(number); }
        std::string operator()(double number) const { return fmt::format("{}", number); }
        std::string operator()(const std::string& text) const { return text; }
        std::string operator()(QueryBlob blob) const { return fmt::format("<{} bytes>", blob.bytes); }
    };
    return std::visit(Visitor{}, value);
}

Json jsonOf(const QueryValue& value)
{
    if (std::holds_alternative<std::monostate>(value))
        return nullptr;
    if (const auto* number = std::get_if<std::int64_t>(&value))
        return *number;
    if (const auto* number = std::get_if<double>(&value))
        return *number;
    return textOf(value);
}

void showSchema(const QueryOptions& options)
{
    const std::vector<TableShape> tables = schemaOf(options.trace);
    if (!options.json) {
        for (const TableShape& table : tables)
            printText("{} ({}): {} row{}\n", table.name, joined(table.columns, ", "), table.rows,
                      table.rows == 1 ? "" : "s");
        return;
    }
    Json object{{"tables", Json::array()}};
    for (const TableShape& table : tables)
        object["tables"].push_back({{"name", table.name}, {"columns", table.columns}, {"rows", table.rows}});
    printJson(object);
}

void run(const QueryOptions& options)
{
    if (options.schema == !options.sql.empty())
        throw Error("query", options.schema ? "a statement and --schema together" : "neither a statement nor --schema",
                    "for example: pipewright query run.db \"SELECT step, end - start FROM STEPS\"");
    if (options.schema) {
        showSchema(options);
        return;
    }
    const WorkProgress untilCancelled{[cancelled = cancelOnSignals()](double) { return !cancelled->load(); }};
    const QueryLimits limits{.rows = static_cast<std::size_t>(options.limit),
                             .time = std::chrono::nanoseconds(parseDuration(options.timeLimit, "--time-limit")),
                             .bytes = parseSize(options.memoryLimit, "--memory-limit")};
    const QueryResult result = queryTrace(options.trace, options.sql, limits, untilCancelled);
    if (options.json) {
        Json object{{"columns", result.columns}, {"rows", Json::array()}, {"cut", result.cut}};
        for (const auto& row : result.rows) {
            Json cells = Json::array();
            for (const QueryValue& value : row)
                cells.push_back(jsonOf(value));
            object["rows"].push_back(std::move(cells));
        }
        // Names may hold invalid UTF-8.
        printText("{}\n", object.dump(Json::InvalidText::Replace));
        return;
    }
    TextTable table(result.columns);
    for (const auto& row : result.rows) {
        std::vector<std::string> cells;
        for (const QueryValue& value : row)
            cells.push_back(textOf(value));
        table.addRow(std::move(cells));
    }
    table.printWide(); // one line per row, so that other programs can read them
    if (result.cut)
        printError("the first {} rows; more with --limit\n", options.limit);
}

} // namespace

void addQueryCommand(CLI::App& program, int& exitCode)
{
    CLI::App& command = *program.add_subcommand("query", "Queries a trace with SQL, or shows its tables");
    const auto options = std::make_shared<QueryOptions>(command);
    command.callback([options, &exitCode] {
        run(*options);
        exitCode = exitSuccess;
    });
}

} // namespace pipewright::app
