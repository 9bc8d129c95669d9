// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/store/chromecategory.h"

#include <array>

namespace pipewright {

namespace {

struct Category {
    std::string_view name;
    ActivityKind kind;
};
/// The first of a kind is the one that is written.
constexpr std::array<Category, 25> categories{{{"kernel", ActivityKind::Kernel},
                                               {"gpu_memcpy", ActivityKind::Memcpy},
                                               {"gpu_memset", ActivityKind::Memset},
                                               {"gpu_user_annotation", ActivityKind::GpuRange},
                                               {"cuda_runtime", ActivityKind::Runtime},
                                               {"cuda_driver", ActivityKind::Runtime},
                                               {"xpu_runtime", ActivityKind::Runtime},
                                               {"xpu_driver", ActivityKind::Runtime},
                                               {"mtia_runtime", ActivityKind::Runtime},
                                               {"glow_runtime", ActivityKind::Runtime},
                                               {"privateuse1_runtime", ActivityKind::Runtime},
                                               {"privateuse1_driver", ActivityKind::Runtime},
                                               {"cuda_sync", ActivityKind::Synchronization},
                                               {"user_annotation", ActivityKind::Range},
                                               {"cpu_op", ActivityKind::Operator},
                                               {"python_function", ActivityKind::Python},
                                               {"overhead", ActivityKind::Overhead},
                                               {"Trace", ActivityKind::Overhead}, // the profiler's own span
                                               {"cpu_instant_event", ActivityKind::Mark},
                                               {"other", ActivityKind::Other},
                                               {"Kernel", ActivityKind::Kernel}, // PyTorch before 2.0
                                               {"Memcpy", ActivityKind::Memcpy},
                                               {"Memset", ActivityKind::Memset},
                                               {"Runtime", ActivityKind::Runtime},
                                               {"Operator", ActivityKind::Operator}}};

} // namespace

std::string_view chromeCategory(ActivityKind kind)
{
    for (const Category& known : categories)
        if (known.kind == kind)
            return known.name;
    return {};
}

ActivityKind kindOfCategory(std::string_view category)
{
    for (const Category& known : categories)
        if (known.name == category)
            return known.kind;
    return ActivityKind::Other;
}

} // namespace pipewright
