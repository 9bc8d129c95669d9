// SPDX-License-Identifier: GPL-3.0-or-later
// Small linear programs, solved by GLPK: the simplex finds the basis and the exact simplex, in rational arithmetic,
// confirms it, so that ratios are exact to double precision.
#pragma once

#include <optional>
#include <utility>
#include <vector>

namespace pipewright::sharding {

/// Minimise objective · x over x >= 0.
struct LinearProgram {
    struct Row {
        std::vector<std::pair<int, double>> terms; ///< variable, coefficient; each variable once
        double limit = 0;
        bool equal = false; ///< otherwise at most
    };
    std::vector<double> objective; ///< one per variable
    std::vector<Row> rows;
};

/// The values of the variables at an optimum; none when no x satisfies the rows. Precondition: every number is
/// finite and the objective is bounded below (it is where no coefficient is negative).
std::optional<std::vector<double>> solve(const LinearProgram& program);

} // namespace pipewright::sharding
