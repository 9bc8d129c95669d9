// SPDX-License-Identifier: GPL-3.0-or-later
// Designs for tests whose stages are held by groups of unequal devices.
#pragma once

#include "core/design/newdesign.h"
#include "core/model/transformer.h"
#include "core/schedule/replicas.h"
#include "makers/models.h"
#include "sanitized.h"

#include <string_view>

namespace pipewright::test {

/// One pipeline device whose members have these rates; with one rate it is not a group.
inline DeviceSpec groupDevice(const std::vector<double>& rates, double bandwidth = 1e9, Nanoseconds latency = 2000)
{
    Cluster cluster;
    cluster.name = "group";
    for (const double rate : rates)
        cluster.devices.push_back({"member", 0, rate, 0, 1});
    cluster.link = {"wire", latency, bandwidth};
    return rates.size() == 1 ? cluster.devices.front() : asOneDevice(std::move(cluster));
}

/// A decoder that groups train: a head of its own, a table of positions. Small, since sanitizers are slow for every
/// token.
inline ModelShape groupShape(int layers = 4)
{
    ModelShape shape = gptShape(layers, 16, 4, 256, sanitized ? 4 : 8, 4);
    shape.tiedHead = false;
    return shape;
}

/// The same with mixtures of experts as layers.
inline ModelShape groupExperts(int layers = 4)
{
    ModelShape shape = groupShape(layers);
    shape.experts = 4;
    shape.expertsPerToken = 2;
    shape.expertFfn = 12;
    shape.activation = Activation::Silu;
    return shape;
}

/// A classifier: MLPs behind a bag of features.
inline ModelShape groupMlp(int layers = 4)
{
    ModelShape shape = gptShape(layers, 16, 1, 4, 8, 4);
    shape.architecture = Architecture::Classifier;
    shape.features = 300;
    return shape;
}

/// The fewest layers with which each stage of two devices has one, for tests that take long.
inline int fewestLayers(std::string_view family)
{
    return family == "interleaved-1f1b" || family == "v-half" ? 4 : 2;
}

/// `devices`: the members' rates of every pipeline device.
inline Design groupDesign(const std::string& family, const std::vector<std::vector<double>>& devices, int microbatches,
                          const ModelShape& shape = groupShape(), double bandwidth = 1e9)
{
    NewDesign request;
    request.family = family;
    request.workload = workloadOf(shape);
    request.cluster.name = "groups";
    for (const std::vector<double>& rates : devices)
        request.cluster.devices.push_back(groupDevice(rates, bandwidth));
    request.cluster.link = {"between", 5000, 1e9};
    request.microbatches = microbatches;
    return designFromModel(request);
}

/// The design with `copies` data-parallel pipelines, each on its own groups, equal to those of the first.
inline Design copiesOf(Design design, int copies)
{
    design.schedule = withReplicas(design.schedule, copies);
    const std::vector<DeviceSpec> devices = design.cluster.devices;
    for (int copy = 1; copy < copies; ++copy)
        design.cluster.devices.insert(design.cluster.devices.end(), devices.begin(), devices.end());
    return design;
}

} // namespace pipewright::test
