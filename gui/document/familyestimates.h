// SPDX-License-Identifier: GPL-3.0-or-later
// The estimated bubble and memory of every family for the present model, cluster and microbatch count. Computed family
// by family on a background thread, because families that search take a while; a newer request cancels the rest of an
// older one.
#pragma once

#include "core/design/design.h"
#include "gui/document/memberpredictor.h"

#include <QObject>
#include <QString>
#include <QThreadPool>

#include <atomic>
#include <functional>
#include <optional>

namespace pipewright {

struct FamilyEstimate {
    std::size_t family = 0; ///< index into families()
    bool possible = false;
    QString reason;                     ///< why not
    double bubble = 0;                  ///< rate_makespan
    double activations = 0;             ///< highest peak of any device, in microbatches on one device
    std::optional<Bytes> peakBytes = 0; ///< with groups, of their members; none: not known
    Nanoseconds makespan = 0;
};

FamilyEstimate estimateOf(const Design& design, const Prediction& prediction); ///< of any family

class FamilyEstimates : public QObject {
    Q_OBJECT

public:
    explicit FamilyEstimates(QObject* parent = nullptr);
    ~FamilyEstimates() override;

    /// Starts over for this design; does nothing when only the order of its blocks differs from the last.
    void request(const Design& base, const MemberPredictor& members);
    void drop(); ///< ends what is under way, and forgets it: the next request starts over
    /// `stop`: ends a family's search early; `possible` is then false.
    static FamilyEstimate estimate(const Design& base, std::size_t family, MemberPredictor& members,
                                   const std::function<bool()>& stop = {});

Q_SIGNALS:
    void started();
    void ready(const FamilyEstimate& estimate);

private:
    QThreadPool m_worker;
    std::atomic<int> m_generation{0};
    Design m_last; ///< without its orders
};

} // namespace pipewright
