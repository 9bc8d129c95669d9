// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/safetensorsfile.h"

#include "core/base/diagnostic.h"
#include "core/base/inputfile.h"
#include "core/json/jsontext.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace pipewright {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t longestHeader = 100'000'000; // the limit of the format's reference library

std::uint64_t littleEndian(const unsigned char* bytes, int count)
{
    std::uint64_t value = 0;
    for (int i = count; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

int widthOf(const std::string& type)
{
    if (type == "F64")
        return 8;
    if (type == "F32")
        return 4;
    return type == "F16" || type == "BF16" ? 2 : 0;
}

float fromHalf(std::uint32_t bits)
{
    const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 0x1fu, fraction = bits & 0x3ffu;
    if (exponent == 31)
        return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) // zero or subnormal: fraction · 2^-24
        return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(static_cast<float>(fraction) * 0x1p-24f));
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

float valueOf(const unsigned char* bytes, int width, const std::string& type)
{
    const std::uint64_t bits = littleEndian(bytes, width);
    if (type == "F64")
        return static_cast<float>(std::bit_cast<double>(bits));
    if (type == "F32")
        return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    return type == "BF16" ? std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16)
                          : fromHalf(static_cast<std::uint32_t>(bits));
}

/// Throws unless the value is a non-negative integer: converting anything else has no defined result.
std::uint64_t wholeNumber(const nlohmann::json& value)
{
    if (!value.is_number_unsigned())
        throw std::invalid_argument("no whole number");
    return value.get<std::uint64_t>();
}

[[noreturn]] void refuse(const std::string& file, std::string what)
{
    throw Error(file, std::move(what), "name a safetensors file, or a folder of them");
}

} // namespace

SafetensorsFile SafetensorsFile::open(const std::string& path)
{
    SafetensorsFile result;
    result.m_path = path;
    std::error_code fault;
    if (!fs::is_directory(path, fault)) {
        result.addFile(path);
        return result;
    }
    std::vector<std::string> files;
    for (fs::directory_iterator entry(path, fault), end; !fault && entry != end; entry.increment(fault))
        if (entry->path().extension() == ".safetensors")
            files.push_back(entry->path().string());
    if (fault || files.empty())
        refuse(path, fault ? "the folder cannot be read: " + fault.message() : "the folder has no .safetensors files");
    std::sort(files.begin(), files.end());
    for (const std::string& file : files)
        result.addFile(file);
    return result;
}

void SafetensorsFile::addFile(const std::string& file)
{
    InputFile input(file);
    unsigned char length[8] = {};
    const bool begins = input.read(reinterpret_cast<char*>(length), sizeof length) == sizeof length;
    const std::uint64_t size = input.size(), header = littleEndian(length, 8);
    if (!begins || header > longestHeader || header + 8 > size)
        refuse(file, "is no safetensors file: its header does not fit into it");
    std::string text(header, '\0');
    const bool whole = input.read(text.data(), text.size()) == text.size();
    const nlohmann::json json = tryJsonFromText(text);
    if (!whole || !json.is_object())
        refuse(file, "is no safetensors file: its header is not JSON");
    for (const auto& [name, entry] : json.items()) {
        if (name == "__metadata__")
            continue;
        Tensor tensor;
        try {
            const nlohmann::json& offsets = entry.at("data_offsets");
            const std::uint64_t begin = wholeNumber(offsets.at(0)), end = wholeNumber(offsets.at(1));
            if (begin > size || end > size)
                refuse(file, fmt::format("the tensor \"{}\" lies outside of the file", name));
            tensor = {file, entry.at("dtype").get<std::string>(), {}, 8 + header + begin, 8 + header + end};
            for (const nlohmann::json& extent : entry.at("shape"))
                tensor.shape.push_back(static_cast<std::int64_t>(wholeNumber(extent)));
        } catch (const Error&) {
            throw;
        } catch (const std::exception&) {
            refuse(file, fmt::format("the tensor \"{}\" has no type, shape and place", name));
        }
        std::uint64_t bytes = static_cast<std::uint64_t>(widthOf(tensor.type));
        for (const std::int64_t extent : tensor.shape) {
            if (extent < 0 || (extent > 0 && bytes > size / static_cast<std::uint64_t>(extent)))
                refuse(file, fmt::format("the tensor \"{}\" is larger than the file", name));
            bytes *= static_cast<std::uint64_t>(extent);
        }
        const bool known = widthOf(tensor.type) > 0; // other types are never read
        if (tensor.begin > tensor.end || tensor.end > size || (known && tensor.end - tensor.begin != bytes))
            refuse(file, fmt::format("the tensor \"{}\" does not lie where its shape says", name));
        if (!m_tensors.emplace(name, std::move(tensor)).second)
            refuse(file, fmt::format("the tensor \"{}\" comes twice", name));
    }
}

std::vector<std::string> SafetensorsFile::names() const
{
    std::vector<std::string> names;
    for (const auto& [name, tensor] : m_tensors)
        names.push_back(name);
    return names;
}

const SafetensorsFile::Tensor& SafetensorsFile::at(const std::string& name) const
{
    const auto found = m_tensors.find(name);
    if (found == m_tensors.end())
        throw Error(m_path, fmt::format("there is no tensor \"{}\"", name), "give weights of this model");
    return found->second;
}

const std::vector<std::int64_t>& SafetensorsFile::shape(const std::string& name) const
{
    return at(name).shape;
}

std::vector<float> SafetensorsFile::values(const std::string& name) const
{
    const Tensor& tensor = at(name);
    const int width = widthOf(tensor.type);
    if (width == 0)
        throw Error(tensor.file, fmt::format("the tensor \"{}\" is of type {}", name, tensor.type),
                    "convert it to F32, F16 or BF16");
    std::vector<unsigned char> bytes(tensor.end - tensor.begin);
    InputFile input(tensor.file);
    input.seek(tensor.begin);
    if (input.read(reinterpret_cast<char*>(bytes.data()), bytes.size()) < bytes.size())
        throw Error(tensor.file, fmt::format("the tensor \"{}\" cannot be read", name), "has the file changed?");
    std::vector<float> values(bytes.size() / static_cast<std::size_t>(width));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = valueOf(bytes.data() + i * static_cast<std::size_t>(width), width, tensor.type);
    return values;
}

} // namespace pipewright
