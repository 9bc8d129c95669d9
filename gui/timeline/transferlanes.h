// SPDX-License-Identifier: GPL-3.0-or-later
// The sub-lanes of transfers: below a device's blocks, its sends and receives in the order in which it issues them. A
// chip is drawn where its transfer begins, or directly behind the previous chip, so that the order can be read and
// chips can be dragged even when transfers take no time. A row with too many chips shows ticks at their times instead.
// Collectives with copies of the pipeline that are only counted, and copies to the host's memory and back, run in
// parallel with the transfers and with each other, so each has its own row.
#pragma once

#include "core/program/transferorder.h"
#include "gui/document/document.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/timecoordinates.h"

#include <QRectF>

#include <array>
#include <optional>
#include <vector>

class QPainter;

namespace pipewright {

class TransferLanes {
public:
    explicit TransferLanes(const Document& document) : m_document(document) {}
    void forget() ///< the design has changed
    {
        m_lists.clear();
        m_stated.reset();
    }
    static int rowsBeside(const Design& design); ///< those besides the row of transfers
    enum class Row { Transfers, Collectives, ToHost, FromHost };
    static Row rowOf(const Transfer& transfer);

    /// The row of a device's sub-lane at height `y`.
    Row rowAt(const QRectF& area, double y) const;

    /// What a device issues, in order, its collectives behind the rest; made when first asked for. Empty without a
    /// prediction.
    const std::vector<IssuedTransfer>& of(int device) const;
    bool isStated(const Transfer& transfer) const; ///< the schedule says something about its order
    QString name(const Transfer& transfer) const;  ///< "F0.1 to GPU 1", "B0.1 collective 2"
    /// "GPU 0 sends F0.1 to GPU 1 as number 2 of 16: …", with its times in the timeline.
    QString text(int device, std::size_t index, const Timeline& times) const;

    struct Chips {
        struct Chip {
            QRectF rect;
            std::size_t index = 0; ///< in the device's list
        };
        std::vector<Chip> shown;
        std::array<bool, 4> dense{}; ///< by row; ticks: too many to grip
        bool isDense(Row row) const { return dense[static_cast<std::size_t>(row)]; }
        /// The chip at a point, or the nearest in its row within two pixels.
        std::optional<std::size_t> at(QPointF position) const;
    };
    /// `area`: the device's sub-lane; `times`: of the prediction's program, every task with one.
    Chips chips(int device, const QRectF& area, const TimeAxis& axis, const Timeline& times) const;
    void paint(QPainter& painter, int device, const QRectF& area, const TimeAxis& axis, const Timeline& times,
               const Theme& theme, const std::optional<Transfer>& selected) const;

private:
    QRectF rowRect(const QRectF& area, Row row) const;

    const Document& m_document;
    mutable std::vector<std::optional<std::vector<IssuedTransfer>>> m_lists; ///< by device
    mutable std::optional<std::vector<Transfer>> m_stated; ///< sorted: an imported order states every transfer
};

} // namespace pipewright
