// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/rates/ratesfile.h"

#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"
#include "core/json/locatedjson.h"
#include "core/json/objectreader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

using Json = nlohmann::ordered_json;

/// The numbers of the table's dimensions among its operation's.
std::vector<int> readDimensions(ObjectReader& reader, RatedOperation operation)
{
    std::vector<int> used;
    const std::vector<std::string_view> known = dimensionsOf(operation);
    const Json* names = reader.array("dims");
    if (names == nullptr)
        return used;
    for (const Json& name : *names) {
        const auto found =
            std::find(known.begin(), known.end(), name.is_string() ? name.get<std::string_view>() : std::string_view());
        const int at = static_cast<int>(found - known.begin());
        if (found == known.end() || std::find(used.begin(), used.end(), at) != used.end())
            reader.fault("dims", "no dimension of this operation, or one that is there twice",
                         fmt::format("known: {}", joined(std::vector<std::string>(known.begin(), known.end()), ", ")));
        else
            used.push_back(at);
    }
    return used;
}

class ShapesReader {
public:
    ShapesReader(const LocatedJson& document, std::string pointer, RateTable& table, Diagnostics& diagnostics)
        : m_document(document), m_pointer(std::move(pointer)), m_table(table), m_diagnostics(diagnostics)
    {
    }

    void read(const Json& list)
    {
        for (std::size_t i = 0; i < list.size(); ++i)
            readShape(list[i], i);
        const auto less = [](const MeasuredRate& a, const MeasuredRate& b) { return a.dims < b.dims; };
        std::sort(m_table.shapes.begin(), m_table.shapes.end(), less);
        if (m_table.shapes.empty() && m_diagnostics.empty())
            fault(m_pointer, "a table without shapes", "give one at least");
        const auto twice = std::adjacent_find(m_table.shapes.begin(), m_table.shapes.end(),
                                              [](const auto& a, const auto& b) { return a.dims == b.dims; });
        if (twice != m_table.shapes.end())
            fault(m_pointer, fmt::format("a shape is there twice: {}", text(twice->dims)), "keep one of them");
    }

private:
    void fault(const std::string& pointer, std::string what, std::string hint)
    {
        addBounded(m_diagnostics, {Severity::Error, m_document.placeOf(pointer), std::move(what), std::move(hint)});
    }
    std::string text(const RateDimensions& dims) const
    {
        std::vector<std::string> sizes;
        for (const int d : m_table.used)
            sizes.push_back(fmt::format("{}", dims[d]));
        return joined(sizes, " × ");
    }
    void readShape(const Json& line, std::size_t index)
    {
        const std::string pointer = fmt::format("{}/{}", m_pointer, index);
        const std::size_t sizes = m_table.used.size();
        const bool numbers = line.is_array() && (line.size() == sizes + 1 || line.size() == sizes + 2)
                             && std::all_of(line.begin(), line.end(), [](const Json& n) { return n.is_number(); });
        if (!numbers) {
            fault(pointer, "no list of sizes, a share, and perhaps seconds",
                  fmt::format("{} sizes, as \"dims\" names them, then the share of the peak", sizes));
            return;
        }
        MeasuredRate rate;
        for (std::size_t i = 0; i < sizes; ++i) {
            double& size = rate.dims[static_cast<std::size_t>(m_table.used[i])];
            size = line[i].get<double>();
            if (!(size >= 1 && size <= 1e15))
                fault(pointer, fmt::format("{} is no size", size), "from 1");
        }
        rate.share = line[sizes].get<double>();
        if (!(rate.share > 0 && rate.share <= 10)) // above 1 where bytes are counted that a cache keeps
            fault(pointer, fmt::format("{} is no share of the peak", rate.share), "more than 0");
        rate.latency = line.size() > sizes + 1 ? line[sizes + 1].get<double>() : 0;
        if (!(rate.latency >= 0 && rate.latency <= 1))
            fault(pointer, fmt::format("{} are no seconds that an operation takes besides", rate.latency), "0 to 1");
        m_table.shapes.push_back(rate);
    }

    const LocatedJson& m_document;
    std::string m_pointer;
    RateTable& m_table;
    Diagnostics& m_diagnostics;
};

/// One name, or a list of those for which the table counts alike; one that is empty where there is none.
std::vector<std::string> readNames(ObjectReader& reader, const Json& value, std::string_view key)
{
    const auto member = value.is_object() ? value.find(key) : value.end();
    std::vector<std::string> names;
    if (member == value.end() || !member->is_array()) {
        reader.read(key, names.emplace_back());
        return names;
    }
    for (const Json& name : *reader.array(key))
        if (name.is_string())
            names.push_back(name.get<std::string>());
        else
            reader.fault(key, "a list with something that is no text", "such as [\"TN\", \"NN\"]");
    if (names.empty())
        reader.fault(key, "an empty list", "name one at least, or leave it out");
    return names;
}

/// Of every layout and combination of types that it names.
std::vector<RateTable> readTables(const LocatedJson& document, const Json& value, const std::string& pointer,
                                  Diagnostics& diagnostics)
{
    RateTable table;
    ObjectReader reader(document, value, pointer, diagnostics);
    std::string name;
    reader.read("operation", name, Presence::Required);
    bool known = false;
    for (int i = 0; !nameOf(static_cast<RatedOperation>(i)).empty(); ++i)
        if (nameOf(static_cast<RatedOperation>(i)) == name) {
            table.operation = static_cast<RatedOperation>(i);
            known = true;
        }
    if (!name.empty() && !known)
        reader.fault("operation", fmt::format("no operation is named {}", inQuotes(name)), "such as product");
    const std::vector<std::string> layouts = readNames(reader, value, "layout"),
                                   types = readNames(reader, value, "types");
    reader.read("link", table.link);
    reader.readRate("peak", table.peak, Presence::Required);
    reader.read("source", table.source, Presence::Required);
    reader.read("when", table.when, Presence::Required);
    table.used = readDimensions(reader, table.operation);
    if (const Json* shapes = reader.array("shapes", Presence::Required))
        ShapesReader(document, reader.pointerTo("shapes"), table, diagnostics).read(*shapes);
    reader.finish();
    std::vector<RateTable> tables;
    for (const std::string& layout : layouts)
        for (const std::string& type : types) {
            table.layout = layout;
            table.types = type;
            tables.push_back(table);
        }
    return tables;
}

CheckedRuns readChecked(const LocatedJson& document, const Json& value, const std::string& pointer,
                        Diagnostics& diagnostics)
{
    CheckedRuns runs;
    ObjectReader reader(document, value, pointer, diagnostics);
    reader.readName("products", runs.products);
    reader.read("runs", runs.runs, 1, 1'000'000);
    reader.readRate("median", runs.median, Presence::Required);
    reader.readRate("largest", runs.largest, Presence::Required);
    reader.read("of", runs.of, Presence::Required);
    reader.read("where", runs.where, Presence::Required);
    reader.finish();
    return runs;
}

} // namespace

OperationRates parseRates(std::string_view text, const std::string& where)
{
    const LocatedJson document = parseLocatedJson(text, where);
    Diagnostics diagnostics;
    OperationRates rates;
    ObjectReader reader(document, document.value, "", diagnostics);
    reader.read("title", rates.title, Presence::Required);
    reader.read("origin", rates.origin, Presence::Required);
    if (const Json* checked = reader.array("checked"))
        for (std::size_t i = 0; i < checked->size(); ++i)
            rates.checked.push_back(readChecked(document, (*checked)[i], fmt::format("/checked/{}", i), diagnostics));
    if (const Json* tables = reader.array("tables", Presence::Required))
        for (std::size_t i = 0; i < tables->size(); ++i)
            for (RateTable& table : readTables(document, (*tables)[i], fmt::format("/tables/{}", i), diagnostics)) {
                for (const RateTable& other : rates.tables)
                    if (other.operation == table.operation && other.layout == table.layout && other.types == table.types
                        && other.link == table.link)
                        reader.fault("tables",
                                     fmt::format("two tables of {} {} {}{}", nameOf(table.operation), table.layout,
                                                 table.types, table.link),
                                     "put their shapes into one");
                rates.tables.push_back(std::move(table));
            }
    reader.finish();
    if (!diagnostics.empty())
        throw Error(std::move(diagnostics));
    return rates;
}

} // namespace pipewright
