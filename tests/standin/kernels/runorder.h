// SPDX-License-Identifier: GPL-3.0-or-later
// The order in which a stand-in GPU runs the blocks of a launch and the threads of a block, as PIPEWRIGHT_STANDIN_ORDER
// says: a correct kernel gives the same results in any order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace standin {

class RunOrder {
public:
    RunOrder()
    {
        const char* text = std::getenv("PIPEWRIGHT_STANDIN_ORDER");
        const std::string wanted = text ? text : "forwards";
        if (wanted == "forwards" || wanted == "backwards") {
            m_backwards = wanted == "backwards";
        } else if (wanted.starts_with("shuffled")) {
            m_shuffled = true;
            if (wanted.size() > 9 && wanted[8] == ':')
                m_seed = std::uint32_t(std::strtoul(wanted.c_str() + 9, nullptr, 10));
        } else {
            std::fprintf(stderr,
                         "stand-in GPU: PIPEWRIGHT_STANDIN_ORDER is forwards, backwards or shuffled:SEED, not %s\n",
                         text);
            std::abort();
        }
    }
    void fill(std::vector<std::size_t>& order, std::size_t count)
    {
        order.resize(count);
        std::iota(order.begin(), order.end(), 0);
        if (m_backwards)
            std::reverse(order.begin(), order.end());
        if (m_shuffled)
            std::shuffle(order.begin(), order.end(), m_random);
    }
    void restart() { m_random.seed(m_seed); }

private:
    bool m_backwards = false, m_shuffled = false;
    std::uint32_t m_seed = 1;
    std::mt19937 m_random;
};

} // namespace standin
