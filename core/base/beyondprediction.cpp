// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/beyondprediction.h"

namespace pipewright {

double beyondPrediction(double measured, double predicted)
{
    return predicted > 0 ? (measured - predicted) / predicted : 0;
}

} // namespace pipewright
