// SPDX-License-Identifier: GPL-3.0-or-later
// A vector whose new elements are not written, for memory that is read into: writing zeros first would take as long as
// reading, and would use memory for all announced bytes, also for those that never come.
#pragma once

#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace pipewright {

template<typename T>
struct LeavesUnfilled : std::allocator<T> {
    template<typename Other>
    struct rebind {
        using other = LeavesUnfilled<Other>;
    };
    using std::allocator<T>::allocator;
    /// Constructs an element without writing a value.
    template<typename Element>
    void construct(Element* element)
    {
        ::new (static_cast<void*>(element)) Element;
    }
    template<typename Element, typename... Values>
    void construct(Element* element, Values&&... values)
    {
        ::new (static_cast<void*>(element)) Element(std::forward<Values>(values)...);
    }
};

template<typename T>
using UnfilledVector = std::vector<T, LeavesUnfilled<T>>;

} // namespace pipewright
