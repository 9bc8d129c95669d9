// SPDX-License-Identifier: GPL-3.0-or-later
// Reads tensors from one safetensors file, or from all of a folder. Headers are read and checked on opening, a tensor's
// values on request.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pipewright {

class SafetensorsFile {
public:
    /// A file, or a folder with files that end in .safetensors. Throws Error naming the file if it is unreadable, its
    /// header is invalid, or a tensor lies outside the file or occurs twice.
    static SafetensorsFile open(const std::string& path);

    const std::string& path() const { return m_path; }
    std::vector<std::string> names() const;
    bool has(const std::string& name) const { return m_tensors.contains(name); }
    /// Throws Error when there is none.
    const std::vector<std::int64_t>& shape(const std::string& name) const;
    /// Of F32, F64, F16 and BF16, as fp32. Throws Error: no such tensor, another type, a file that has changed.
    std::vector<float> values(const std::string& name) const;

private:
    struct Tensor {
        std::string file, type;
        std::vector<std::int64_t> shape;
        std::uint64_t begin = 0, end = 0; ///< bytes in the file
    };
    void addFile(const std::string& file);
    const Tensor& at(const std::string& name) const;

    std::string m_path;
    std::map<std::string, Tensor> m_tensors;
};

} // namespace pipewright
