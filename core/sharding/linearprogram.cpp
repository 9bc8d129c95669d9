// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/linearprogram.h"

#include <glpk.h>

#include <memory>

namespace pipewright::sharding {

namespace {

constexpr std::size_t mostExactRows = 600; // rational arithmetic is slow beyond

struct Deleter {
    void operator()(glp_prob* problem) const { glp_delete_prob(problem); }
};

} // namespace

std::optional<std::vector<double>> solve(const LinearProgram& program)
{
    glp_term_out(GLP_OFF);
    const std::unique_ptr<glp_prob, Deleter> problem(glp_create_prob());
    glp_set_obj_dir(problem.get(), GLP_MIN);
    const int columns = static_cast<int>(program.objective.size()), rows = static_cast<int>(program.rows.size());
    glp_add_cols(problem.get(), columns);
    for (int c = 1; c <= columns; ++c) {
        glp_set_col_bnds(problem.get(), c, GLP_LO, 0, 0);
        glp_set_obj_coef(problem.get(), c, program.objective[c - 1]);
    }
    if (rows > 0)
        glp_add_rows(problem.get(), rows);
    for (int r = 1; r <= rows; ++r) {
        const LinearProgram::Row& row = program.rows[r - 1];
        glp_set_row_bnds(problem.get(), r, row.equal ? GLP_FX : GLP_UP, row.limit, row.limit);
        std::vector<int> index{0};
        std::vector<double> value{0};
        for (const auto& [variable, coefficient] : row.terms) {
            index.push_back(variable + 1);
            value.push_back(coefficient);
        }
        glp_set_mat_row(problem.get(), r, static_cast<int>(row.terms.size()), index.data(), value.data());
    }
    glp_smcp settings;
    glp_init_smcp(&settings);
    settings.msg_lev = GLP_MSG_OFF;
    settings.meth = GLP_DUALP; // all costs are non-negative, so the slack basis is dual feasible from the start
    if (glp_simplex(problem.get(), &settings) != 0)
        return std::nullopt;
    if (program.rows.size() <= mostExactRows && glp_exact(problem.get(), &settings) != 0)
        return std::nullopt;
    if (glp_get_status(problem.get()) != GLP_OPT)
        return std::nullopt;
    std::vector<double> values;
    for (int c = 1; c <= columns; ++c)
        values.push_back(glp_get_col_prim(problem.get(), c));
    return values;
}

} // namespace pipewright::sharding
