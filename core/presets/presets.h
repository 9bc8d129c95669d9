// SPDX-License-Identifier: GPL-3.0-or-later
// Models, devices and clusters by name, from the JSON files in the resource folder. A preset's name is its file name;
// people add their own by adding files.
#pragma once

#include "core/cluster/cluster.h"
#include "core/workload/workload.h"

#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

enum class PresetKind { Model, Device, Cluster };

struct Preset {
    std::string name;   ///< "llama-3-8b"
    std::string title;  ///< "Llama 3 8B"
    std::string origin; ///< where its numbers come from
};

/// The folder that holds models/, devices/ and clusters/: $PIPEWRIGHT_RESOURCES, else ../share/pipewright
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
    /// `devices` > 0: that many devices, by repeating the preset's list, instead of as many as it lists. A name that
    /// ends with .json is a file of its own (clusterfile.h), whose devices are not repeated.
    Cluster cluster(std::string_view name, int devices = 0) const;

private:
    DeviceSpec groupOf(std::string_view name, std::string_view within) const;

    std::string m_directory;
};

} // namespace pipewright
