#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The design part of the Python package: needs the program and Python's standard library, not PyTorch.

    design_package.py PIPEWRIGHT
"""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "executor", "torch"))
import pipewright as pw  # noqa: E402
from pipewright.profile import Moment, Profiler  # noqa: E402


def one_f_one_b(device, devices=4, microbatches=8):
    """1F1B, written as a person would."""
    ahead = min(devices - device, microbatches)
    blocks = [f"F{device}.{m}" for m in range(ahead)]
    for m in range(microbatches):
        blocks.append(f"B{device}.{m}")
        if m + ahead < microbatches:
            blocks.append(f"F{device}.{m + ahead}")
    return blocks


class DesignPackage(unittest.TestCase):
    def test_a_design_is_made_predicted_and_written(self):
        design = pw.new("zb-h1", devices=4, microbatches=8, forward="10ms", input_grad="10ms", weight_grad="10ms")
        self.assertEqual(len(design.order), 4)
        self.assertEqual(design.placement, [0, 1, 2, 3])
        self.assertEqual(design.check(), [])
        prediction = design.predict()
        self.assertEqual(prediction.makespan_ns, prediction.all["makespan_ns"])
        self.assertEqual(prediction.busy_ns, [240_000_000] * 4)
        self.assertEqual([row["busy_ns"] for row in prediction.devices], prediction.busy_ns)
        families = design.families()
        self.assertIn("zb-h1", [row["family"] for row in families])
        self.assertEqual(len(str(families).splitlines()), len(families) + 1)
        self.assertEqual(families._repr_html_().count("<tr>"), len(families) + 1)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.json")
            design.write(path)
            self.assertEqual(pw.read(path), design)
            self.assertEqual(os.listdir(folder), ["a.json"])

    def test_a_function_is_a_schedule(self):
        own = pw.schedule(one_f_one_b, devices=4, name="mine", forward="10ms", input_grad="10ms", weight_grad="10ms")
        published = pw.new("1f1b", devices=4, microbatches=8, forward="10ms", input_grad="10ms", weight_grad="10ms")
        self.assertEqual(own.order, published.order)
        self.assertEqual(own.check(), [])
        self.assertEqual(own.predict().makespan_ns, published.predict().makespan_ns)

    def test_several_stages_and_a_split_backward(self):
        def two_stages(device):
            stages = [device, 3 - device]  # a V
            return [f"{op}{stage}.0" for op, line in (("F", stages), ("I", stages[::-1]), ("W", stages)) for stage in line]

        own = pw.schedule(two_stages, devices=2)
        self.assertEqual(own.placement, [0, 1, 1, 0])
        self.assertEqual(own.json["schedule"]["backward"], "split")
        self.assertEqual(own.check(), [])

    def test_an_edit_changes_the_prediction_and_a_wrong_one_is_said(self):
        design = pw.new("gpipe", devices=2, microbatches=4)
        edited = design.copy()
        edited.order[0].reverse()
        self.assertNotEqual(edited, design)
        faults = edited.check()
        self.assertTrue(faults and "device 0" in faults[0] or "F0" in faults[0], faults)
        with self.assertRaises(pw.Fault):
            edited.predict()
        self.assertEqual(design.check(), [])

    def test_a_check_for_a_backend_says_once_what_it_would_not_do(self):
        large = pw.new("1f1b", devices=4, microbatches=8, model="llama-3.1-405b", cluster="h200-node", tensor_parallel=1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            said = large.check(for_="host", maths="training")
        self.assertEqual(([str(each.message) for each in caught], len(said) > 0), ([], True), said)

    def test_a_better_order_is_found(self):
        design = pw.new("gpipe", devices=2, microbatches=6)
        better = design.search(memory_limit="2x", time_limit="5s")
        self.assertLessEqual(better.predict().makespan_ns, design.predict().makespan_ns)
        self.assertLess(max(better.predict().peak_bytes), max(design.predict().peak_bytes))
        self.assertLessEqual(better.found["bound_ns"], better.found["best_ns"])

    def test_a_run_is_recorded_and_compared(self):
        design = pw.new("1f1b", devices=2, microbatches=2)
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "a.db")
            report = design.run(trace, backend="host", steps=2)
            self.assertTrue(report["gradient_check"]["bit_equal"])
            compared = design.compare(trace)
            self.assertEqual(compared.blocks["unmatched"], 0)
            self.assertEqual(compared.devices.columns()[:2], ["device", "busy_error"])
            self.assertEqual(design.calibrate(trace, busy_machine=True).order, design.order)

    def test_a_notebook_gets_a_picture(self):
        design = pw.new("1f1b", devices=2, microbatches=2)
        self.assertTrue(design._repr_mimebundle_()["image/svg+xml"].lstrip().startswith("<svg"))
        design.order[0].reverse()
        shown = design._repr_mimebundle_()
        self.assertEqual(list(shown), ["text/plain"])
        self.assertRegex(shown["text/plain"], r"<Design .*>\nno picture: error: device 0, position 0.*\(and \d+ more; check\(\) lists them\)$")

    def test_the_time_of_a_pass_is_without_that_of_other_programs(self):
        of_cpu = types.SimpleNamespace(device=types.SimpleNamespace(type="cpu"), wall=0, taken=0)
        begin = Moment(wall=1000, thread=200, switches=3)
        self.assertEqual(Profiler._between(of_cpu, begin, Moment(1900, 500, 3)), 300)  # its core was taken for 600 ns
        self.assertEqual(Profiler._between(of_cpu, begin, Moment(1900, 500, 4)), 900)  # it slept
        self.assertEqual((of_cpu.wall, of_cpu.taken), (1800, 1200))

    def test_faults_name_the_place(self):
        with self.assertRaises(pw.Refused) as refused:
            pw.schedule(lambda device: ["F0.0", "X0.0"], devices=1)
        self.assertIn("'X0.0' is not a block", str(refused.exception))
        with self.assertRaises(pw.Fault) as fault:
            pw.new("no-such-family", devices=2, microbatches=2)
        self.assertIn("no-such-family", str(fault.exception))

    def test_a_file_that_is_no_design_is_refused_when_it_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.json")
            for content, what in ((None, "cannot be read: No such file"), ("{", "cannot be read: Expecting"), ("[1]", "this is not a Pipewright design"),
                                  ('{"name": "x"}', "this is not a Pipewright design"), ("[" * 100_000, "cannot be read: ")):
                if content is not None:
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(content)
                with self.assertRaises(pw.Refused) as refused:
                    pw.read(path)
                self.assertTrue(str(refused.exception).startswith(f"{path}: {what}"), refused.exception)

    def test_faults_name_no_file_that_is_gone(self):
        wrong = pw.new("gpipe", devices=2, microbatches=2)
        wrong.order[0].reverse()
        with self.assertRaises(pw.Fault) as fault:
            wrong.predict()
        self.assertNotIn("design.json", str(fault.exception))
        self.assertTrue(str(fault.exception).startswith("error: device 0, position 0"), fault.exception)

    def test_a_fault_has_an_error_once_and_a_traceback_of_a_module_goes_to_standard_error(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "pipewright")
            with open(program, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\necho 'Traceback (most recent call last):' >&2\necho 'ValueError: no' >&2\n"
                           "echo 'rank 0: error: ValueError: no (hint)' >&2\nexit 2\n")
            os.chmod(program, 0o755)
            before = pw.calls.program()
            pw.use_program(program)
            try:
                with self.assertRaises(pw.Fault) as fault, contextlib.redirect_stderr(io.StringIO()) as said:
                    pw.new("1f1b", devices=2, microbatches=2)
            finally:
                pw.use_program(before)
        self.assertEqual(str(fault.exception), "rank 0: error: ValueError: no (hint)")
        self.assertIn("Traceback", said.getvalue())

    def test_an_error_names_the_keyword_once_and_nothing_is_printed_beside_it(self):
        with self.assertRaises(pw.Fault) as fault, contextlib.redirect_stderr(io.StringIO()) as said:
            pw.new("1f1b", devices=2, microbatches=2, optimizer="sdg")
        self.assertTrue(str(fault.exception).startswith("optimizer: error: "), fault.exception)
        self.assertEqual((str(fault.exception).count("sdg"), said.getvalue()), (1, ""))
        self.assertEqual(fault.exception._render_traceback_(), [f"Fault: {fault.exception}"])

    def test_a_value_that_an_option_does_not_take_is_said_in_the_fault(self):
        with self.assertRaises(pw.Fault) as fault, contextlib.redirect_stderr(io.StringIO()) as said:
            pw.new("1f1b", devices=2, microbatches="many")
        self.assertEqual((str(fault.exception), said.getvalue()), ("Could not convert: microbatches = many", ""))

    def test_a_program_that_is_not_there_is_named(self):
        before = pw.calls.program()
        pw.use_program("/nowhere/pipewright")
        try:
            with self.assertRaises(pw.Refused) as refused:
                pw.new("1f1b", devices=2, microbatches=2)
        finally:
            pw.use_program(before)
        self.assertTrue(str(refused.exception).startswith("/nowhere/pipewright: cannot be started: No such file"), refused.exception)

    def test_a_designer_that_does_not_open_says_why(self):
        design = pw.new("1f1b", devices=2, microbatches=2)
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, {"QT_QPA_PLATFORM": "xcb", "DISPLAY": ""}):
            with unittest.mock.patch("tempfile.tempdir", folder), self.assertRaises(pw.Fault) as fault:
                design.open()
        self.assertRegex(str(fault.exception), "built without Qt|display")

    def test_an_option_that_a_command_does_not_have_is_refused_with_the_nearest(self):
        with self.assertRaises(pw.Refused) as refused:
            pw.new("1f1b", devices=2, micro_batches=2)
        self.assertIn("micro_batches: is no option of `pipewright new` (did you mean microbatches?)", str(refused.exception))

    def test_the_options_are_those_of_the_program(self):
        with open(os.path.join(HERE, "..", "..", "executor", "torch", "pipewright", "options.py"), encoding="utf-8") as file:
            printed = subprocess.run([pw.calls.program(), "--generate", "python"], capture_output=True, text=True).stdout
            self.assertEqual(file.read(), printed, "pipewright --generate python >executor/torch/pipewright/options.py")

    def test_a_warning_is_of_the_line_that_caused_it(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pw.new("1f1b", devices=2, microbatches=2, model="llama-3-8b").predict()
            own = pw.new("dualpipe", devices=2, microbatches=4)
            with tempfile.TemporaryDirectory() as folder:
                own.export("pytorch-csv", os.path.join(folder, "a.csv"))
        self.assertTrue(caught)
        self.assertEqual({os.path.basename(each.filename) for each in caught}, {"design_package.py"})

    def test_a_design_is_exported_drawn_and_read_again(self):
        design = pw.new("zb-h1", devices=2, microbatches=4)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.csv")
            self.assertEqual(design.export("pytorch-csv", path)["format"], "pytorch-csv")
            self.assertEqual(pw.imported(path).order, design.order)
            with self.assertRaises(pw.Fault) as fault:
                design.export("pytorch-csv", path)
            self.assertIn("a.csv", str(fault.exception))  # the user's own file is named
            self.assertEqual(design.render(os.path.join(folder, "a.svg"), title="mine"),
                             {"picture": os.path.join(folder, "a.svg"), "measured": False})
            with open(os.path.join(folder, "a.svg"), encoding="utf-8") as file:
                self.assertIn("mine", file.read())

    def test_a_recording_is_asked_and_explained(self):
        recording = os.path.join(HERE, "..", "..", "resources", "examples", "zb-h1-byte-gpt.db")
        rows = pw.query(recording, "SELECT step, end - start AS ns FROM STEPS")
        self.assertEqual(rows.columns(), ["step", "ns"])
        self.assertIn("STEPS", [table["name"] for table in pw.tables(recording)])
        explained = pw.explain(recording)
        self.assertIn("contribution_ns", explained["causes"].columns())
        self.assertIn("idle_ns.transfer", explained["per_device"].columns())
        with self.assertRaises(pw.Fault) as fault:
            pw.query(recording, "SELECT 1 FROM NOTHING")
        self.assertIn("the tables are listed by tables()", str(fault.exception))
        with self.assertRaises(pw.Refused):
            pw.query(recording, "SELECT step, step FROM STEPS")
        with self.assertRaises(pw.Refused) as refused:
            pw.explain(recording, to_="5ms")
        self.assertIn("did you mean to?", str(refused.exception))
        with self.assertRaises(pw.Fault) as fault:
            pw.explain(recording, from_="0ms")
        self.assertTrue(str(fault.exception).startswith("from_: error: "), fault.exception)

    def test_plans_are_designs(self):
        plans = pw.plan(model="llama-3-8b", cluster="h100-node", devices=8, batch=8, top=1, time_limit="20s",
                        families=["1f1b"], pin="tensor=8")
        self.assertGreaterEqual(len(plans), 1)
        self.assertEqual(plans[0]["design"].check(), [])
        with self.assertRaises(pw.Refused) as refused:
            pw.plan(model="llama-3-8b", cluster="h100-node", devices=8, batch=8, what_if="devices=4")
        self.assertIn("pipewright plan --json", str(refused.exception))

    def test_a_table_becomes_pandas_where_it_is(self):
        table = pw.Table([{"a": 1, "b": 2}, {"a": 3, "c": {"d": 4, "e": {"f": True}}}])
        self.assertEqual(table.columns(), ["a", "b", "c.d", "c.e.f"])
        with unittest.mock.patch.dict(sys.modules, {"pandas": None}), self.assertRaises(pw.Refused) as refused:
            table.to_pandas()
        self.assertIn("pip install pandas", str(refused.exception))
        stand_in = types.ModuleType("pandas")
        stand_in.DataFrame = lambda rows, columns: {name: [row.get(name) for row in rows] for name in columns}
        stand_in.Series = lambda cells, dtype: (dtype, cells)
        with unittest.mock.patch.dict(sys.modules, {"pandas": stand_in}):
            self.assertEqual(table.to_pandas(), {"a": [1, 3], "b": ("Int64", [2, None]), "c.d": ("Int64", [None, 4]),
                                                 "c.e.f": ("boolean", [None, True])})

    def test_an_answer_is_shown_in_a_line(self):
        self.assertEqual(repr(pw.new("1f1b", devices=2, microbatches=2).predict()).split(",")[0], "<Prediction: 9 ms a step")
        shown = pw.new("1f1b", devices=2, microbatches=2).predict()._repr_html_()
        self.assertEqual((shown.count("<table>"), shown.count("<tr>")), (1, 3))


if __name__ == "__main__":
    pw.use_program(os.path.abspath(sys.argv.pop(1)))
    unittest.main()
