// SPDX-License-Identifier: GPL-3.0-or-later
// Position by position: the angles of all pairs advance by one step in double precision, with an error below 1e-11
// after a hundred thousand positions, and are used for all sequences and heads. O(tokens · heads · size).
#include "kernels/calls.h"

#include <array>
#include <cassert>

namespace pipewright::kernels {
namespace {

struct Turn {
    double cosine, sine;
};

void turnHead(const Rotate& call, const std::array<float, mostRotaryPairs>& cosines,
              const std::array<float, mostRotaryPairs>& sines, float* head)
{
    const int pairs = call.size / 2, step = call.neighbours ? 2 : 1, apart = call.neighbours ? 1 : pairs;
    for (int i = 0; i < pairs; ++i) {
        float& first = head[i * step];
        float& second = head[i * step + apart];
        const float before = first;
        first = before * cosines[std::size_t(i)] - second * sines[std::size_t(i)];
        second = second * cosines[std::size_t(i)] + before * sines[std::size_t(i)];
    }
}

} // namespace

void run(const Rotate& call)
{
    const auto pairs = std::size_t(call.size / 2), row = std::size_t(call.heads) * std::size_t(call.headSize);
    assert(call.size % 2 == 0 && pairs <= mostRotaryPairs && call.offset + call.size <= call.headSize);
    assert(call.values.size() % (row * std::size_t(call.length)) == 0);
    std::array<Turn, mostRotaryPairs> at, step;
    for (std::size_t i = 0; i < pairs; ++i) {
        const double frequency = rotaryFrequency(call.frequencies, int(i), call.size) * (call.backwards ? -1 : 1);
        at[i] = {std::cos(call.first * frequency), std::sin(call.first * frequency)};
        step[i] = {std::cos(frequency), std::sin(frequency)};
    }
    std::array<float, mostRotaryPairs> cosines, sines;
    const std::size_t sequence = row * std::size_t(call.length);
    for (int position = 0; position < call.length; ++position) {
        for (std::size_t i = 0; i < pairs; ++i) {
            const auto [cosine, sine] = at[i];
            cosines[i] = float(cosine);
            sines[i] = float(sine);
            at[i] = {cosine * step[i].cosine - sine * step[i].sine, sine * step[i].cosine + cosine * step[i].sine};
        }
        for (std::size_t token = std::size_t(position) * row; token < call.values.size(); token += sequence)
            for (int head = 0; head < call.heads; ++head)
                turnHead(call, cosines, sines,
                         call.values.data() + token + std::size_t(head) * std::size_t(call.headSize) + call.offset);
    }
}

} // namespace pipewright::kernels
