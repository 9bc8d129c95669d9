// SPDX-License-Identifier: GPL-3.0-or-later
// The shared memory of a block: variables one after another, with guard bytes for the address sanitizer between them.
// When a block begins they hold a NaN pattern, since their contents are undefined on a GPU.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace standin {

class SharedMemory {
public:
    static constexpr std::size_t most = 48 << 10; ///< bytes of a block without opting in to more

    SharedMemory();
    ~SharedMemory();

    /// Starts another kernel.
    void forget();
    /// Starts another block.
    void begin();
    /// The variable for a key; null: it does not fit.
    void* find(const void* key, std::size_t bytes, std::size_t alignment);

private:
    struct Variable {
        const void* key;
        std::byte* place;
        std::size_t bytes;
    };
    static constexpr std::size_t room = most + (8 << 10);
    std::unique_ptr<std::byte[]> m_memory;
    std::array<Variable, 64> m_variables; ///< nothing is allocated while a kernel runs
    std::size_t m_count = 0, m_end = 0, m_sum = 0;
};

} // namespace standin
