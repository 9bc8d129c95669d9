// SPDX-License-Identifier: GPL-3.0-or-later
// Where a test has hundreds of rows that differ in numbers alone, the sanitizers, up to ten times slower, are content
// with some of them. The thread sanitizer looks for races only.
#pragma once

#if defined(__SANITIZE_THREAD__)
inline constexpr bool threadSanitized = true;
#else
inline constexpr bool threadSanitized = false;
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PIPEWRIGHT_TESTS_ADDRESSES
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define PIPEWRIGHT_TESTS_ADDRESSES
#endif

#if defined(PIPEWRIGHT_TESTS_ADDRESSES)
inline constexpr bool addressSanitized = true;
#else
inline constexpr bool addressSanitized = false;
#endif

inline constexpr bool sanitized = threadSanitized || addressSanitized;

/// Whether a sanitized test leaves out the row of this number, counted from 0.
constexpr bool leftOut(int row)
{
    return (threadSanitized && row % 4 != 0) || (addressSanitized && row % 2 != 0);
}
