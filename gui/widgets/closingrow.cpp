// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/closingrow.h"

#include <QHBoxLayout>
#include <QPushButton>

namespace pipewright {

QHBoxLayout* makeClosingRow(QDialog& window, QPushButton* purpose)
{
    auto* close = new QPushButton(QDialog::tr("Close"), &window);
    close->setAutoDefault(false); // Return presses `purpose`, Escape closes
    QObject::connect(close, &QPushButton::clicked, &window, &QDialog::close);
    auto* row = new QHBoxLayout;
    row->setSpacing(8);
    row->addStretch(0);
    for (QPushButton* button : {close, purpose}) {
        if (!button)
            continue;
        button->setProperty("closing", true);
        row->addWidget(button);
    }
    return row;
}

} // namespace pipewright
