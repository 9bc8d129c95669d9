// SPDX-License-Identifier: GPL-3.0-or-later
// Reads the reports of stand-in GPUs, one for each process.
#pragma once

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QStringList>

#include <algorithm>
#include <vector>

namespace pipewright::test {

struct StandInReports {
    std::vector<QJsonObject> reports; ///< of each process

    /// Over all processes.
    double counted(const QString& what) const
    {
        double sum = 0;
        for (const QJsonObject& report : reports)
            sum += report["counts"][what].toDouble();
        return sum;
    }
    double most(const QString& what) const
    {
        double most = 0;
        for (const QJsonObject& report : reports)
            most = std::max(most, report["most"][what].toDouble());
        return most;
    }
    /// Violations of the documentation, and resources that were not released; empty: none.
    QString faults() const
    {
        QString text;
        for (const QJsonObject& report : reports) {
            for (const auto& each : report["broken"].toArray())
                text += each.toString() + "; ";
            const QJsonObject held = report["held"].toObject();
            for (auto each = held.begin(); each != held.end(); ++each)
                text += QString("%1 %2 left; ").arg(each.value().toDouble()).arg(each.key());
        }
        return text;
    }
    QStringList namesLike(const QString& what) const ///< of counts
    {
        QStringList names;
        for (const QJsonObject& report : reports)
            for (const QString& name : report["counts"].toObject().keys())
                if (name.startsWith(what))
                    names << name.mid(what.size());
        return names;
    }
};

} // namespace pipewright::test
