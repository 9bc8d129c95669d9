// SPDX-License-Identifier: GPL-3.0-or-later
// Writes the step as columns of numbers, one entry per task, behind the page that draws them (sharedpagescript.h).
#include "core/exchange/sharedpage.h"

#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"
#include "core/cluster/devicename.h"
#include "core/exchange/picturetheme.h"
#include "core/exchange/sharedpagescript.h"
#include "core/json/jsontext.h"
#include "core/predict/criticalpath.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace pipewright {

namespace {

constexpr std::size_t mostTasks = 100'000;

/// As JSON that also stands in a script of an HTML page.
std::string scriptText(std::string_view text)
{
    std::string json = asciiJsonText(text);
    for (std::size_t at = 0; (at = json.find('<', at)) != std::string::npos;)
        json.replace(at, 1, "\\u003c");
    return json;
}

class PageText {
public:
    PageText(const Design& design, const Prediction& prediction, const Timeline* measured, const CurveOf& curve,
             const Pieces& to)
        : m_design(design), m_prediction(prediction), m_program(prediction.program), m_measured(measured),
          m_curve(curve), m_buffer(to)
    {
    }

    void write()
    {
        m_buffer.text += sharedPageHead;
        m_buffer.text += fmt::format("const step = {{\nname: {},\ncosts: {},\n", scriptText(m_design.name),
                                     scriptText(m_design.costs.source));
        writeColours();
        writeDevices();
        column("label", [this](TaskId t) { return scriptText(m_program.label(t)); });
        column("device", [this](TaskId t) { return m_program.tasks[t].recordedOn(); });
        column("op", [this](TaskId t) { return colourOf(m_program.tasks[t]); });
        column("beside", [this](TaskId t) { return isBesideBlocks(m_program.tasks[t].kind) ? 1 : 0; });
        column("before", [this](TaskId t) { return numberOf(m_program.afterOnDevice[t]); });
        m_buffer.text += "predicted: {\n";
        writeTimes(m_prediction.timeline);
        m_buffer.text += "},\nmeasured: ";
        if (m_measured != nullptr) {
            m_buffer.text += "{\n";
            writeTimes(*m_measured);
            m_buffer.text += "}";
        } else {
            m_buffer.text += "null";
        }
        m_buffer.text += "\n};\n";
        m_buffer.text += sharedPageScript;
        m_buffer.finish();
    }

private:
    /// Of an operation, by its number; opCount: of what moves or sums values.
    static std::size_t colourOf(const Task& task)
    {
        return task.kind == TaskKind::Compute ? indexOf(task.op)
               : isUpdate(task.kind)          ? indexOf(Op::U)
                                              : static_cast<std::size_t>(opCount);
    }
    static int numberOf(TaskId t) { return t == none ? -1 : static_cast<int>(t); }

    void writeColours()
    {
        for (const auto& [key, theme] : {std::pair{"light", &lightTheme}, std::pair{"dark", &darkTheme}}) {
            m_buffer.text += fmt::format(
                R"({}: {{ground: "{}", panel: "{}", line: "{}", text: "{}", dim: "{}", accent: "{}", bad: "{}", ink: "{}", held: "{}", ops: [)",
                key, theme->background, theme->panel, theme->hairline, theme->text, theme->dim, theme->accent,
                theme->bad, theme->ink, theme->persistent);
            for (int op = 0; op <= opCount; ++op)
                m_buffer.text += fmt::format("{}\"{}\"", op > 0 ? ", " : "", theme->colourOf(op));
            m_buffer.text += "]},\n";
        }
        m_buffer.text += "ops: [";
        for (const Op op : allOps)
            m_buffer.text += fmt::format("\"{}\", ", letter(op));
        m_buffer.text += "\"moved or summed\"],\n";
    }

    void writeDevices()
    {
        const auto limitOf = [this](std::size_t device) {
            return device < m_design.cluster.devices.size() ? m_design.cluster.devices[device].memory : Bytes(0);
        };
        m_buffer.text += "devices: [\n";
        for (std::size_t d = 0; d < m_program.devices.size(); ++d)
            m_buffer.text += fmt::format(
                "{{name: {}, limit: {}, held: {}}},\n", scriptText(deviceName(m_design.cluster, static_cast<int>(d))),
                m_program.hasMembers() ? Bytes(0) : limitOf(d), m_program.devices[d].persistentBytes);
        m_buffer.text += "],\n";
    }

    /// One entry of `of` per task.
    template<class Of>
    void column(std::string_view name, Of of)
    {
        m_buffer.text += fmt::format("{}: [", name);
        for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
            appendFormatted(m_buffer.text, "{}{}", t > 0 ? "," : "", of(t));
            m_buffer.handOn();
        }
        m_buffer.text += "],\n";
    }

    void writeTimes(const Timeline& timeline)
    {
        const bool predicted = &timeline == &m_prediction.timeline;
        column("start", [&](TaskId t) { return timeline.start[t]; });
        column("end", [&](TaskId t) { return timeline.start[t] == notRun ? notRun : timeline.end[t]; });
        column("after", [&](TaskId t) { return numberOf(latestInput(m_program, timeline, t).after); });
        const Metrics metrics = predicted ? m_prediction.metrics : measure(m_program, timeline);
        m_buffer.text += fmt::format("length: {}, idle: {:.5f},\ndevices: [\n", metrics.makespan, metrics.rateMakespan);
        for (std::size_t d = 0; d < metrics.devices.size(); ++d) {
            const IdleCauses& causes = metrics.idleCauses[d];
            m_buffer.text += fmt::format(
                R"({{busy: {}, peak: {}, causes: [["before its first block", {}], ["for activations", {}], ["for gradients", {}], ["for transfers", {}], ["for copies", {}], ["after its last block", {}], ["for the host", {}], ["for other things", {}]], memory: [)",
                metrics.devices[d].busy, metrics.devices[d].peakBytes, causes.warmUp, causes.waitActivation,
                causes.waitGradient, causes.transfer, causes.copies, causes.coolDown, causes.host, causes.other);
            writeCurve(predicted && timeline.memory.empty() && m_curve ? m_curve(static_cast<int>(d))
                       : d < timeline.memory.size()                    ? timeline.memory[d]
                                                                       : std::vector<MemorySample>());
            m_buffer.text += "]},\n";
        }
        m_buffer.text += "],\n";
    }

    /// Times and bytes in turn.
    void writeCurve(const std::vector<MemorySample>& samples)
    {
        for (std::size_t i = 0; i < samples.size(); ++i) {
            appendFormatted(m_buffer.text, "{}{},{}", i > 0 ? "," : "", samples[i].time, samples[i].bytes);
            m_buffer.handOn();
        }
    }

    const Design& m_design;
    const Prediction& m_prediction;
    const Program& m_program;
    const Timeline* m_measured;
    const CurveOf& m_curve;
    PieceBuffer m_buffer;
};

} // namespace

void sharedPage(const Design& design, const Prediction& prediction, const Timeline* measured, const CurveOf& curve,
                const Pieces& to)
{
    if (prediction.program.tasks.size() > mostTasks)
        throw Error("page",
                    fmt::format("a page to share holds {} blocks and transfers at most, and this step has {}",
                                mostTasks, prediction.program.tasks.size()),
                    "use --to perfetto, or a step with fewer microbatches");
    PageText(design, prediction, measured, curve, to).write();
}

} // namespace pipewright
