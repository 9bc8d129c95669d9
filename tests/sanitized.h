// SPDX-License-Identifier: GPL-3.0-or-later
// Where a test has hundreds of rows that differ in numbers alone, the thread sanitizer, ten times slower and after
// races only, is content with some of them.
#pragma once

#if defined(__SANITIZE_THREAD__)
inline constexpr bool threadSanitized = true;
#else
inline constexpr bool threadSanitized = false;
#endif
