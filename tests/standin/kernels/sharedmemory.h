// SPDX-License-Identifier: GPL-3.0-or-later
// The shared memory of a block: variables one behind the other, with room between them that the address sanitizer
// watches. When a block begins they hold a pattern that is not a number, as nothing can be known about them on a GPU.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace standin {

class SharedMemory {
public:
    static constexpr std::size_t most = 48 << 10; ///< of a block, without asking for more

    SharedMemory();
    ~SharedMemory();

    /// For another kernel.
    void forget();
    /// For another block.
    void begin();
    /// The variable of that key; null: there is no room for it.
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
