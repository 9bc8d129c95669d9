// SPDX-License-Identifier: GPL-3.0-or-later
// The zero-bubble paper's numbers (arXiv 2401.10241), as bubble rates of the longest device span with the paper's four
// digits: Table 5 at 8 devices, Table 8 at 16, and the data behind Fig. 9, of which the limits rise by an eighth from 1
// to 3 times the activations of 1F1B. The lists for ZB-V at 24 and 32 devices end with the last value that was read.
#pragma once

#include <vector>

namespace pipewright::published {

/// Times in microseconds of one device's worth of layers; a transfer is one hop.
struct Instance {
    const char* model;
    int devices, microbatches, forward, inputGrad, weightGrad, transfer;
    int kept, keptForWeightGrad; ///< shares of an activation's bytes: all of it, and what stays until W
};

/// Table 5: at the memory of 1F1B the best of 1F1B, ZB-H1 and ZB-1p is ZB-1p; at the memory of ZB-H2 it is ZB-H2; at
/// twice that of 1F1B it is ZB-2p; interleaved 1F1B has `chunks` on each device and its own memory.
struct TableFive {
    Instance instance;
    int chunks;
    double interleaved, zbOnce, zbH2, zbTwice;
};

inline const std::vector<TableFive> tableFive = {
    {{"1.5B", 8, 24, 18522, 18086, 9337, 601, 131, 48}, 3, .1055, .1585, .1083, .0433},
    {{"1.5B", 8, 32, 18513, 18086, 9331, 626, 131, 48}, 3, .0818, .1242, .0837, .0039},
    {{"1.5B", 8, 64, 18546, 18097, 9321, 762, 131, 48}, 3, .0443, .0674, .0444, .0026},
    {{"6.2B", 8, 24, 29718, 29444, 19927, 527, 37, 16}, 4, .0808, .1323, .0698, .0029},
    {{"6.2B", 8, 32, 29802, 29428, 19530, 577, 37, 16}, 4, .0628, .1045, .0559, .0022},
    {{"6.2B", 8, 64, 29935, 29621, 19388, 535, 37, 16}, 4, .0320, .0554, .0294, .0010},
};

/// Table 8 and Fig. 9; ZB-H1 and ZB-V of the table are the figure's values at 1 times the memory. 0: not published.
struct FigureNine {
    Instance instance;
    double interleaved, zbH2;
    std::vector<double> linear, v; ///< at 1, 1.125, 1.25, … times the memory
};

inline const std::vector<FigureNine> figureNine = {
    {{"6.2B", 16, 48, 28814, 28760, 19352, 1610, 37, 16},
     .1499,
     .0823,
     {.1536, .1272, .0998, .0773, .0632, .0493, .0350, .0209, .0077, .0077, .0077, .0077, .0077, .0077, .0077, .0077,
      .0077},
     {.0697, .0497, .0306, .0203, .0065, .0065, .0035, .0035, .0035, .0035, .0035, .0035, .0035, .0035, .0035, .0035,
      .0035}},
    {{"6.2B", 16, 64, 28824, 28786, 19376, 1621, 37, 16},
     .1169,
     .0630,
     {.1198, .0986, .0768, .0591, .0483, .0375, .0266, .0154, .0052, .0052, .0052, .0052, .0052, .0052, .0052, .0000,
      .0000},
     {.0533, .0379, .0233, .0154, .0049, .0049, .0027, .0027, .0027, .0027, .0027, .0027, .0027, .0027, .0027, .0027,
      .0027}},
    {{"6.2B", 16, 128, 28632, 28612, 19278, 1619, 37, 16},
     .0621,
     .0325,
     {.0637, .0518, .0399, .0305, .0248, .0192, .0135, .0078, .0026, .0026, .0026, .0026, .0026, .0026, .0026, .0000,
      .0000},
     {.0274, .0193, .0118, .0067, .0025, .0025, .0014, .0014, .0014, .0014, .0014, .0014, .0014, .0014, .0014, .0014,
      .0014}},
    {{"14.6B", 24, 72, 13526, 13938, 10502, 755, 37, 16},
     0,
     0,
     {.1439, .1161, .0911, .0787, .0659, .0528, .0393, .0254, .0111, .0049, .0049, .0049, .0049, .0049, .0049, .0007,
      .0000},
     {.0638, .0419, .0222, .0143, .0039, .0039, .0039}},
    {{"28.3B", 32, 96, 18916, 19496, 14576, 879, 37, 16},
     0,
     0,
     {.1429, .1127, .0907, .0783, .0654, .0523, .0387, .0248, .0104, .0037, .0037, .0037, .0037, .0037, .0037, .0037,
      .0000},
     {.0593, .0383, .0177, .0116, .0032, .0032, .0032}},
};

/// No number is published for it: the largest that the search promises, against the same families.
inline const Instance largest{"28.3B", 32, 256, 18916, 19496, 14576, 879, 37, 16};

/// Optima that integer and constraint programming agree on, or that meet a bound: times in milliseconds, the span with
/// `inMemory` microbatches in memory. 0: not known, so only the gap is reported.
struct Optimum {
    int devices, microbatches, forward, inputGrad, weightGrad, inMemory, span;
};

inline const std::vector<Optimum> optima = {
    {4, 4, 1, 1, 1, 4, 15},   {4, 8, 1, 1, 1, 4, 27},     {4, 8, 1, 1, 1, 7, 24},     {4, 8, 5, 6, 4, 4, 141},
    {4, 8, 5, 6, 4, 7, 129},  {4, 12, 5, 6, 4, 4, 201},   {8, 16, 1, 1, 1, 15, 48},   {8, 16, 10, 10, 9, 15, 478},
    {8, 24, 5, 6, 4, 8, 409}, {4, 8, 5, 6, 4, 3, 163},    {4, 8, 1, 1, 1, 3, 31},     {4, 8, 5, 6, 4, 2, 215},
    {4, 12, 5, 6, 4, 3, 236}, {24, 72, 1, 1, 1, 47, 216}, {24, 72, 10, 10, 9, 47, 0}, {8, 24, 5, 6, 4, 12, 0},
    {8, 24, 5, 6, 4, 4, 0},   {4, 12, 5, 6, 4, 2, 0},     {6, 12, 5, 6, 4, 4, 0},     {6, 12, 1, 1, 1, 4, 0},
    {8, 16, 5, 6, 4, 6, 0},
};

} // namespace pipewright::published
