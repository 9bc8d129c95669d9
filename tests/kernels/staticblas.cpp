// SPDX-License-Identifier: GPL-3.0-or-later
// OpenBLAS as a bundle has it, of few processors (kernels/rooms.cmake): small, and every processor that it tells apart
// is given code that this one runs and that computes right products. Started again for each, by the variable that
// OpenBLAS reads when it is loaded.
#include <cblas.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

const char* const program = "/proc/self/exe";

/// Of a product whose sizes no register width divides; 0 when it is right.
int wrongProduct()
{
    const int rows = 37, columns = 53, inner = 71;
    std::vector<float> a(std::size_t(rows) * inner), b(std::size_t(inner) * columns), c(std::size_t(rows) * columns);
    for (std::size_t i = 0; i < a.size(); ++i)
        a[i] = float(i * 7 % 13) - 6;
    for (std::size_t i = 0; i < b.size(); ++i)
        b[i] = float(i * 5 % 11) - 5;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, columns, inner, 1, a.data(), inner, b.data(), columns,
                0, c.data(), columns);
    for (int row = 0; row < rows; ++row)
        for (int column = 0; column < columns; ++column) {
            float sum = 0; // of small integers: exact in any order
            for (int k = 0; k < inner; ++k)
                sum += a[std::size_t(row) * inner + std::size_t(k)] * b[std::size_t(k) * columns + std::size_t(column)];
            if (c[std::size_t(row) * columns + std::size_t(column)] != sum)
                return 1;
        }
    return 0;
}

/// The name of the code that OpenBLAS took for this processor; empty: it failed.
std::string codeFor(const std::string& processor)
{
    setenv("OPENBLAS_CORETYPE", processor.c_str(), 1);
    std::FILE* child = popen(("exec " + std::filesystem::read_symlink(program).string() + " product").c_str(), "r");
    char name[64] = "";
    if (!child || std::fscanf(child, "%63s", name) != 1)
        name[0] = 0;
    return child && pclose(child) == 0 ? name : "";
}

} // namespace

int main(int count, char**)
{
    if (count > 1) {
        openblas_set_num_threads(1);
        std::puts(openblas_get_corename());
        return wrongProduct();
    }
    int failures = 0;
    if (const std::uintmax_t bytes = std::filesystem::file_size(std::filesystem::read_symlink(program));
        bytes > 6'000'000) {
        std::printf("WRONG: %ju bytes: the code of other processors was not left out\n", bytes);
        ++failures;
    }
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
               avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
                        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    struct Row {
        const char *processor, *code;
        bool runs;
    };
    for (const Row& row : {Row{"Prescott", "Prescott", true},
                           {"Nehalem", "Prescott", true},
                           {"Sandybridge", "Prescott", true},
                           {"Barcelona", "Prescott", true},
                           {"Steamroller", "Prescott", true},
                           {"Excavator", "Haswell", avx2},
                           {"Haswell", "Haswell", avx2},
                           {"Zen", "Haswell", avx2},
                           {"SkylakeX", "SkylakeX", avx512}}) {
        const std::string code = row.runs ? codeFor(row.processor) : row.code;
        failures += code != row.code;
        std::printf("%-12s %s %s\n", row.processor, row.runs ? code.c_str() : "not run on this processor",
                    code == row.code ? "ok" : "WRONG");
    }
    std::printf("%d wrong\n", failures);
    return failures > 0;
}
