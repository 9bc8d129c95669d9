// SPDX-License-Identifier: GPL-3.0-or-later
// The loops of the matrix product, for one register width. Included by one source file per width, each
// compiled for its instructions; everything is in an unnamed namespace and uses no library function, so that
// code for a wide machine cannot end up in another file's place.
//
// The plan is that of Goto and van de Geijn (ACM TOMS 34, 2008) cut down to matrices that fit the second
// cache: a panel of b, depthBlock x panelWidth, is packed and stays in the first cache while tiles of c
// walk down it; a tile's sums stay in registers. a is read where it is, one broadcast per row and depth.
#pragma once

#include "kernels/host/gemm.h"

namespace {

using pipewright::kernels::Operand;
using pipewright::kernels::Product;

constexpr int depthBlock = 128;

/// Width: floats of a register. A tile is tileRows x (2 · Width), sized to leave registers for a and b.
template <int Width, int tileRows>
struct Gemm {
    typedef float Vector __attribute__((vector_size(Width * sizeof(float)), aligned(alignof(float)), may_alias));
    static constexpr int panelWidth = 2 * Width;

    static void run(const Product& product) {
        alignas(64) float panel[depthBlock * panelWidth];
        for (int column = 0; column < product.columns; column += panelWidth) {
            const int columns = smaller(panelWidth, product.columns - column);
            for (int from = 0; from < product.depth; from += depthBlock) {
                const int depth = smaller(depthBlock, product.depth - from);
                pack(product.b, from, depth, column, columns, panel);
                const float keep = from == 0 ? product.beta : 1.0f;
                for (int row = 0; row < product.rows; row += tileRows)
                    tile(product, panel, row, column, columns, from, depth, keep);
            }
        }
    }

private:
    static int smaller(int a, int b) { return a < b ? a : b; }

    /// panel[k][j] = b[from + k][column + j], zero beyond the last column.
    static void pack(const Operand& b, int from, int depth, int column, int columns, float* panel) {
        if (b.transposed) {
            for (int j = 0; j < columns; ++j) {
                const float* line = b.values + std::size_t(column + j) * b.leading + from;
                for (int k = 0; k < depth; ++k)
                    panel[k * panelWidth + j] = line[k];
            }
        } else {
            for (int k = 0; k < depth; ++k) {
                const float* line = b.values + std::size_t(from + k) * b.leading + column;
                if (columns == panelWidth)
                    for (int j = 0; j < panelWidth; ++j)
                        panel[k * panelWidth + j] = line[j];
                else
                    for (int j = 0; j < columns; ++j)
                        panel[k * panelWidth + j] = line[j];
            }
        }
        for (int j = columns; j < panelWidth; ++j)
            for (int k = 0; k < depth; ++k)
                panel[k * panelWidth + j] = 0;
    }

    static void tile(const Product& product, const float* panel, int row, int column, int columns, int from,
                     int depth, float keep) {
        const int rows = smaller(tileRows, product.rows - row);
        const Operand& a = product.a;
        const std::size_t rowStep = a.transposed ? 1 : std::size_t(a.leading);
        const std::size_t depthStep = a.transposed ? std::size_t(a.leading) : 1;
        const float* corner = a.values + row * rowStep + from * depthStep;
        const float* lines[tileRows]; // rows past the end repeat the last one; their sums are dropped
        for (int i = 0; i < tileRows; ++i)
            lines[i] = corner + smaller(i, rows - 1) * rowStep;

        Vector sums[tileRows][2] = {};
        for (int k = 0; k < depth; ++k, panel += panelWidth) {
            const Vector left = *reinterpret_cast<const Vector*>(panel);
            const Vector right = *reinterpret_cast<const Vector*>(panel + Width);
#pragma GCC unroll 16
            for (int i = 0; i < tileRows; ++i) {
                const float value = lines[i][k * depthStep];
                sums[i][0] += value * left;
                sums[i][1] += value * right;
            }
        }

#pragma GCC unroll 16
        for (int i = 0; i < tileRows; ++i) {
            if (i >= rows)
                break;
            float* c = product.c + std::size_t(row + i) * product.leadingC + column;
            if (columns == panelWidth)
                store(c, sums[i][0], sums[i][1], product.alpha, keep);
            else
                storeSome(c, columns, sums[i][0], sums[i][1], product.alpha, keep);
        }
    }

    static void store(float* c, Vector left, Vector right, float alpha, float keep) {
        Vector* to = reinterpret_cast<Vector*>(c);
        left *= alpha;
        right *= alpha;
        to[0] = keep == 0 ? left : left + keep * to[0];
        to[1] = keep == 0 ? right : right + keep * to[1];
    }

    /// The same through a copy, so that an edge rounds exactly as the middle does.
    static void storeSome(float* c, int columns, Vector left, Vector right, float alpha, float keep) {
        float whole[panelWidth] = {};
        if (keep != 0)
            for (int j = 0; j < columns; ++j)
                whole[j] = c[j];
        store(whole, left, right, alpha, keep);
        for (int j = 0; j < columns; ++j)
            c[j] = whole[j];
    }
};

} // namespace
