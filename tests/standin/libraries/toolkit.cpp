// SPDX-License-Identifier: GPL-3.0-or-later
#include "toolkit.h"

namespace standin {

const int toolkit = STANDIN_TOOLKIT;

} // namespace standin
