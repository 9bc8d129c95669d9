// SPDX-License-Identifier: GPL-3.0-or-later
// Models, devices and clusters by name, from the JSON files in the resource folder. A preset's name is its file name;
// people add their own by adding files.
#pragma once

#include "core/cluster/cluster.h"
#include "core/model/workload.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

enum class PresetKind { Model, Device, Cluster, Rates };

struct Preset {
    std::string name;   ///< "llama-3-8b"
    std::string title;  ///< "Llama 3 8B"
    std::string origin; ///< where its numbers come from
};

/// The folder that holds models/, devices/, clusters/ and rates/: $PIPEWRIGHT_RESOURCES, else ../share/pipewright
/// beside the program's folder, else the source tree this was built from. Throws Error naming what was tried.
std::string findResourceDirectory();

class PresetLibrary {
public:
    explicit PresetLibrary(std::string directory = findResourceDirectory());
    const std::string& directory() const { return m_directory; }

    /// Sorted by name. Unreadable files are left out here and reported when loaded by name.
    std::vector<Preset> list(PresetKind kind) const;

    /// These throw Error: an unknown name (with the known ones), or the file's faults by line.
    ModelShape model(std::string_view name) const;
    Workload workload(std::string_view modelName, Optimizer optimizer = Optimizer::AdamW) const; ///< source "preset …"
    DeviceSpec device(std::string_view name) const;
    std::shared_ptr<const OperationRates> rates(std::string_view name) const; ///< what devices reached
    /// `devices` > 0: that many devices instead of as many as it lists, each of which stands for `members` of the real
    /// ones. A cluster of nodes has its list once per node, and core/cluster/nodes.h counts; threads of this machine
    /// ("repeats") are as many as are asked for; of others, Error when there are fewer. A name that ends with .json is
    /// a file of its own (clusterfile.h).
    Cluster cluster(std::string_view name, int devices = 0, std::int64_t members = 1) const;
    /// How many devices it has; nothing: as many as are asked for.
    std::optional<std::int64_t> capacity(std::string_view name) const;

private:
    struct Listed {
        Cluster cluster;
        bool repeats = false;
        std::optional<std::int64_t> capacity() const;
    };
    Listed listed(std::string_view name) const;
    DeviceSpec groupOf(std::string_view name, std::string_view within) const;

    std::string m_directory;
};

} // namespace pipewright
