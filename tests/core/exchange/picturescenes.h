// SPDX-License-Identifier: GPL-3.0-or-later
// Small programs to draw, and the elements of their pictures.
#pragma once

#include "core/exchange/timelinepicture.h"

#include <QXmlStreamReader>

#include <map>

namespace pipewright::test {

// `devices` independent chains of F then B per microbatch: enough of a program to draw.
struct Scene {
    Design design;
    Prediction prediction;
};

inline Scene chains(int devices, int microbatches, Nanoseconds forward, Nanoseconds backward)
{
    Scene scene;
    scene.design.name = "chains";
    scene.design.schedule.family = "custom";
    Program& program = scene.prediction.program;
    program.microbatches = microbatches;
    program.devices.resize(static_cast<std::size_t>(devices));
    Timeline& timeline = scene.prediction.timeline;
    for (int device = 0; device < devices; ++device) {
        program.deviceOfStage.push_back(device);
        Nanoseconds now = 0;
        for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
            for (const Op op : {Op::F, Op::I}) {
                program.tasks.emplace_back(TaskKind::Compute, op, 0, device, microbatch, device);
                timeline.start.push_back(now);
                now += op == Op::F ? forward : backward;
                timeline.end.push_back(now);
            }
        }
        scene.prediction.metrics.makespan = now;
    }
    return scene;
}

// Counts elements by name, and fails on anything that is not well-formed XML.
inline std::map<QString, int> elementsOf(const std::string& svg, bool* wellFormed)
{
    QXmlStreamReader reader(QByteArray::fromStdString(svg));
    std::map<QString, int> count;
    while (!reader.atEnd())
        if (reader.readNext() == QXmlStreamReader::StartElement)
            ++count[reader.name().toString()];
    *wellFormed = !reader.hasError();
    return count;
}

inline int occurrences(const std::string& text, const std::string& what)
{
    int count = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
        ++count;
    return count;
}

inline PicturePanel panelOf(const Scene& scene)
{
    return {scene.design, scene.prediction};
}

/// The attribute of the picture's outermost element: "8.5cm".
inline QString sizeOf(const std::string& svg, const char* attribute)
{
    QXmlStreamReader reader(QByteArray::fromStdString(svg));
    while (!reader.atEnd())
        if (reader.readNext() == QXmlStreamReader::StartElement)
            return reader.attributes().value(QLatin1String(attribute)).toString();
    return {};
}

} // namespace pipewright::test
