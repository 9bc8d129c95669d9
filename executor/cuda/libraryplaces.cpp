// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/libraryplaces.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

namespace pipewright {

bool isAbsolute(const std::string& path)
{
    return !path.empty() && path.front() == '/';
}

namespace {

namespace fs = std::filesystem;

/// The entries of a variable such as PATH; an empty one, which means the current folder, too.
std::vector<std::string> entriesOf(const char* variable)
{
    const char* value = std::getenv(variable);
    const std::string text = value ? value : "";
    std::vector<std::string> entries;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find(':', begin), text.size());
        entries.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return entries;
}

/// The prefixes (sys.prefix) of the Pythons that would run. A virtual environment's prefix is the parent of its "bin",
/// even if the interpreter there is a link to another folder.
std::vector<std::string> pythonPrefixes()
{
    std::vector<std::string> prefixes;
    for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
        if (const char* prefix = std::getenv(variable); prefix && isAbsolute(prefix))
            prefixes.emplace_back(prefix);
    for (const std::string& folder : entriesOf("PATH"))
        if (std::error_code error; isAbsolute(folder) && fs::exists(folder + "/python3", error)) {
            prefixes.push_back(fs::path(folder).parent_path().string());
            break;
        }
    prefixes.emplace_back("/usr/local");
    return prefixes;
}

/// The wheel's folder in the packages of every Python version below these prefixes.
std::vector<std::string> wheelFolders(const std::string& wheel)
{
    std::vector<std::string> folders;
    if (const char* wheels = std::getenv("CUDA_WHEELS")) // absolute, or the loader refuses it
        folders.push_back(std::string(wheels) + "/nvidia/" + wheel + "/lib");
    for (const std::string& prefix : pythonPrefixes())
        for (const char* lib : {"/lib", "/lib64"}) {
            std::error_code error;
            std::vector<std::string> versions;
            for (const fs::directory_entry& entry : fs::directory_iterator(prefix + lib, error))
                if (entry.path().filename().string().starts_with("python3"))
                    versions.push_back(entry.path().string());
            std::sort(versions.begin(), versions.end());
            for (const std::string& version : versions)
                for (const char* packages : {"/site-packages", "/dist-packages"})
                    folders.push_back(version + packages + "/nvidia/" + wheel + "/lib");
        }
    return folders;
}

/// The cache's layout (glibc, sysdeps/generic/dl-cache.h): a header, entries, then their strings, at offsets from the
/// start of the header.
struct CacheHeader {
    char magic[20];
    std::uint32_t entries, textBytes;
    std::uint8_t flags, padding[3];
    std::uint32_t extension, unused[3];
};
struct CacheEntry {
    std::int32_t flags;
    std::uint32_t name, path, system;
    std::uint64_t hardware;
};
constexpr std::string_view cacheMagic = "glibc-ld.so.cache1.1";
constexpr std::int32_t elf64 = 0x0303; // FLAG_ELF_LIBC6 | FLAG_X8664_LIB64
constexpr std::int32_t aarch64 = 0x0a03;

} // namespace

std::string inLoaderCache(const std::string& file, const std::string& cache)
{
    std::ifstream stream(cache, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    CacheHeader header{};
    if (bytes.size() < sizeof header)
        return {};
    std::memcpy(&header, bytes.data(), sizeof header);
    if (std::string_view(header.magic, sizeof header.magic) != cacheMagic
        || bytes.size() < sizeof header + header.entries * sizeof(CacheEntry))
        return {};
    const auto textAt = [&bytes](std::uint32_t place) {
        return place < bytes.size() ? std::string_view(bytes).substr(place, bytes.find('\0', place) - place)
                                    : std::string_view();
    };
    for (std::uint32_t i = 0; i < header.entries; ++i) {
        CacheEntry entry{};
        std::memcpy(&entry, bytes.data() + sizeof header + i * sizeof entry, sizeof entry);
        if ((entry.flags == elf64 || entry.flags == aarch64) && textAt(entry.name) == file)
            return std::string(textAt(entry.path));
    }
    return {};
}

std::string whereLibraryIs(const std::string& file, const std::string& wheel, const std::vector<std::string>& folders)
{
    std::vector<std::string> places = folders;
    const auto append = [&places](const std::vector<std::string>& more) {
        places.insert(places.end(), more.begin(), more.end());
    };
    append(entriesOf("LD_LIBRARY_PATH"));
    append({"/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"});
    const std::string cached = inLoaderCache(file);
    if (isAbsolute(cached))
        places.push_back(fs::path(cached).parent_path().string());
    append({"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib64", "/usr/local/lib", "/opt/cuda/lib64"});
    append(wheelFolders(wheel));
    for (const std::string& place : places)
        if (std::error_code error; isAbsolute(place) && fs::exists(place + "/" + file, error))
            return place + "/" + file;
    return {};
}

} // namespace pipewright
