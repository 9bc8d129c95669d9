// SPDX-License-Identifier: GPL-3.0-or-later
// The kernels of the selected block in the overlaid run: one row per group of kernels with its time, and below it the
// kernels by name, as they ran on the GPU. Hidden where no kernels were recorded.
#pragma once

#include "gui/document/document.h"
#include "gui/widgets/quietfocus.h"

#include <QTreeWidget>

namespace pipewright {

class KernelList : public QuietFocus<QTreeWidget> {
    Q_OBJECT

public:
    explicit KernelList(Document& document, QWidget* parent = nullptr);

private:
    void fill();

    Document& m_document;
};

} // namespace pipewright
